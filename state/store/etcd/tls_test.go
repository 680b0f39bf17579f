package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/state/store"
	"bijou/state/store/etcd"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// TestTLS checks a member that uses TLS and requires clients' certificates.
func TestTLS(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	etcdtest.Need(t)
	dir := t.TempDir()
	ca := newAuthority(t, dir, "ca")
	ca.issue(t, "server")
	ca.issue(t, "client")
	newAuthority(t, dir, "other").issue(t, "stranger")
	address := freeAddress(t)
	etcdtest.For(t, etcdtest.Options{Flags: tlsFlags(dir, address)})
	url := "etcd://" + address + "/a/b?ca=" + dir + "/ca.pem"
	good := url + "&cert=" + dir + "/client.pem&key=" + dir + "/client.key"
	check(t, etcd.Create(t.Context(), good))
	s := openAt(t, good)
	defer s.Close()
	put(t, s, "a")
	w, err := s.Watch(t.Context(), revision(t, s), store.Below("a"))
	check(t, err)
	defer w.Close()
	put(t, s, "a")
	_, err = w.Next(t.Context())
	check(t, err)

	for what, url := range map[string]string{
		"no certificate":       url,
		"another's":            url + "&cert=" + dir + "/stranger.pem&key=" + dir + "/stranger.key",
		"no TLS":               "etcd://" + address + "/a/b",
		"the system's roots":   "etcd://" + address + "/a/b?tls=true",
		"another authority":    strings.Replace(good, "ca.pem", "other.pem", 1),
		"a CA that is none":    strings.Replace(good, "ca.pem", "client.key", 1),
		"a key that is public": strings.Replace(good, "client.key", "client.pem", 1),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, err := etcd.Open(ctx, url)
		cancel()
		if err == nil {
			t.Errorf("%s: it was opened", what)
		}
	}
}

// TestTLSRenewed checks that an open store and its watchers continue to work when certificates expire, are
// renewed, and are signed by a new authority.
func TestTLSRenewed(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	etcdtest.Need(t)
	dir := t.TempDir()
	ca := newAuthority(t, dir, "ca")
	ca.issue(t, "server")
	address := freeAddress(t)
	c := etcdtest.For(t, etcdtest.Options{Flags: tlsFlags(dir, address)})
	// Even a busy machine opens the store in this time.
	end := time.Now().Add(30 * time.Second)
	ca.issueUntil(t, "client", end)
	url := "etcd://" + address + "/a?ca=" + dir + "/ca.pem&cert=" + dir + "/client.pem&key=" + dir + "/client.key"
	check(t, etcd.Create(t.Context(), url))
	s := openAt(t, url)
	defer s.Close()
	w, err := s.Watch(t.Context(), revision(t, s), store.Below("a"))
	check(t, err)
	defer w.Close()

	reconnect := func() {
		check(t, c.Members[0].Kill())
		check(t, c.Members[0].Start())
	}
	follows := func(what string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := commitUntilKnown(ctx, s, store.Txn{Ops: []store.Op{{Key: "a"}}}); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if _, err := w.Next(ctx); err != nil {
			t.Fatalf("%s: the watcher: %v", what, err)
		}
	}
	follows("at first")
	// The times in certificates have whole seconds.
	waitFault(time.Until(end) + time.Second)
	follows("the connection of before")
	reconnect()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = s.Commit(ctx, store.Txn{Ops: []store.Op{{Key: "expired"}}})
	wantError(t, err, store.ErrAway)
	ca.issue(t, "client")
	follows("a new certificate")

	check(t, os.WriteFile(dir+"/client.pem", nil, 0o644))
	reconnect()
	follows("half of a new certificate")

	ca = newAuthority(t, dir, "ca")
	ca.issue(t, "server")
	ca.issue(t, "client")
	reconnect()
	follows("a new authority")
}

// tlsFlags returns the flags of a member that uses TLS at the address and requires clients'
// certificates.
func tlsFlags(dir, address string) []string {
	return []string{
		"--listen-client-urls=unix://m0:1,https://" + address, "--advertise-client-urls=https://" + address,
		"--cert-file=" + dir + "/server.pem", "--key-file=" + dir + "/server.key",
		"--client-cert-auth", "--trusted-ca-file=" + dir + "/ca.pem",
	}
}

// loopback returns a local address that only this process's children use, so that a free port on it remains
// free.
func loopback() net.IP {
	pid := os.Getpid() // a number of 22 bits
	return net.IPv4(127, 64|byte(pid>>16), byte(pid>>8), byte(pid))
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: loopback()})
	check(t, err)
	defer l.Close()
	return l.Addr().String()
}

// authority signs certificates into a directory.
type authority struct {
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T, dir, name string) *authority {
	t.Helper()
	a := &authority{dir: dir}
	template := template()
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.key, a.cert = a.write(t, name, template)
	return a
}

// issue creates a certificate for servers and clients.
func (a *authority) issue(t *testing.T, name string) {
	t.Helper()
	a.issueUntil(t, name, time.Now().Add(time.Hour))
}

// issueUntil creates a certificate that expires at end.
func (a *authority) issueUntil(t *testing.T, name string, end time.Time) {
	t.Helper()
	template := template()
	template.NotAfter = end
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses = []net.IP{loopback()}
	a.write(t, name, template)
}

func template() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

// write signs a certificate with the authority's key. If there is no key, it writes a self-signed
// certificate.
func (a *authority) write(t *testing.T, name string, template *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	check(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		mode := os.FileMode(0o600)
		if block.Type == "CERTIFICATE" {
			mode = 0o644
		}
		check(t, os.WriteFile(filepath.Join(a.dir, file), pem.EncodeToMemory(block), mode))
	}
	cert, err := x509.ParseCertificate(der)
	check(t, err)
	return key, cert
}
