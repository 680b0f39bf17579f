package ssh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"bijou/provision/provider"
	"bijou/testscripts/conformance/providertest"
	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/fleet"
)

// world is a set of hosts with OpenSSH's server and systemd, and a provider that installs the real
// binary on them.
type world struct {
	*Provider
	t     *testing.T
	hosts []*fleet.Host
}

// newWorld boots the hosts.
func newWorld(t *testing.T, hosts int) *world {
	t.Helper()
	if os.Getenv("BIJOU_TEST_LONG") == "" {
		t.Skip("BIJOU_TEST_LONG is not set")
	}
	fleet.Need(t)
	dir := t.TempDir()
	own, identity := newKey(t)
	f := fleet.New(t, hosts)
	w := &world{t: t}
	var known, pool []string
	for i := range hosts {
		h := f.Host(i)
		w.hosts = append(w.hosts, h)
		h.On(w.t, "mkdir -p /root/.ssh && echo '"+strings.TrimSpace(string(ssh.MarshalAuthorizedKey(own.PublicKey())))+"' >/root/.ssh/authorized_keys && systemctl enable --now --quiet ssh")
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(h.On(w.t, "cat /etc/ssh/ssh_host_ed25519_key.pub")))
		check(t, err)
		known = append(known, knownhosts.Line([]string{h.Address}, key))
		pool = append(pool, "root@"+h.Address)
	}
	write := func(path, text string, mode os.FileMode) string {
		path = filepath.Join(dir, path)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	write("ca.pem", "a certificate", 0o600)
	write("environment.yaml", "name: test\nuuid: e0a1\nstate: etcd://10.77.0.254:1/a?ca="+dir+"/ca.pem\nprovider: ssh\ntools: 1-x\n", 0o600)
	write("tools/1-x/.made", "", 0o600)
	check(t, os.Rename(versions.Current(t), filepath.Join(dir, "tools/1-x/bijou")))
	t.Setenv("SSH_AUTH_SOCK", "")
	p, err := New(provider.Environment{UUID: "e0a1", Name: "test", Dir: dir, Config: map[string]string{
		"identity": write("id", string(identity), 0o600), "known-hosts": write("known_hosts", strings.Join(known, "\n")+"\n", 0o600),
		"pool": "[" + strings.Join(pool, ", ") + "]",
	}})
	check(t, err)
	w.Provider = p
	w.Provider.dialContext = f.Dial
	return w
}

// host returns the host of an instance.
func (w *world) host(instance string) *fleet.Host {
	w.t.Helper()
	for _, h := range w.hosts {
		if strings.HasPrefix(instance, "root@"+h.Address+":") {
			return h
		}
	}
	w.t.Fatalf("no host is instance %q", instance)
	return nil
}

// fresh checks that no trace of the previous case remains.
func (w *world) fresh() {
	w.t.Helper()
	for _, h := range w.hosts {
		if left := h.On(w.t, "find / -xdev -newer /etc/machine-id \\( -path '*bijou*' -o -name '*e0a1*' \\) -not -path '/proc/*' -not -path '/var/log/*'; systemctl list-units --all --no-legend 'bijou-*'; pgrep -x machine-agent; ls -d /run/bijou/* 2>/dev/null || true"); left != "" {
			w.t.Errorf("on %s is left: %s", h.Name, left)
		}
	}
}

// TestRealHosts runs the suite of providers on hosts with OpenSSH's server and systemd.
func TestRealHosts(t *testing.T) {
	w := newWorld(t, 2)
	began := time.Now()
	providertest.Run(t, func(t *testing.T) providertest.Fixture {
		w.t = t
		w.fresh()
		return providertest.Fixture{Provider: w, Crash: func(t *testing.T, instance string) {
			w.host(instance).On(w.t, "systemctl stop 'bijou-machine-*'")
		}}
	})
	w.t = t
	w.fresh()
	t.Logf("ssh: all in %s", time.Since(began).Round(time.Millisecond))
}
