package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

const (
	// A password that etcd has refused is not tried again for so long, twice as long each time.
	firstLoginBackoff = time.Second
	maxLoginBackoff   = 30 * time.Second
)

// authenticator has etcd's client, which would always log in with the password that it was
// given at first, use what the password file holds by then. A password that etcd has
// refused is tried again later and later; another one at once.
type authenticator struct {
	config config
	now    func() time.Time

	mu              sync.Mutex
	refusedPassword string
	refusal         error // nil: the last login was not refused
	backoff         time.Duration
	retryAt         time.Time
}

func (a *authenticator) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	login, ok := req.(*pb.AuthenticateRequest)
	if !ok {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	password, err := a.config.readPassword()
	if err == nil {
		err = a.activeRefusal(password)
	}
	if err != nil {
		return err
	}
	err = invoke(ctx, method, &pb.AuthenticateRequest{Name: login.Name, Password: password}, reply, conn, opts...)
	a.recordResult(password, err)
	return err
}

// activeRefusal returns why the password is not to be tried yet, or nil.
func (a *authenticator) activeRefusal(password string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refusedPassword == password && a.now().Before(a.retryAt) {
		return a.refusal
	}
	return nil
}

// Only an answer says something of the password: other errors change nothing.
func (a *authenticator) recordResult(password string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.refusal, a.backoff = nil, 0
	case errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed):
		a.refusal, a.refusedPassword = err, password
		a.backoff = min(max(2*a.backoff, firstLoginBackoff), maxLoginBackoff)
		a.retryAt = a.now().Add(a.backoff)
	}
}

func (a *authenticator) isRefused() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refusal != nil
}

func (p config) loadTLS() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.ca != "" {
		pem, err := os.ReadFile(p.ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("file %q holds no certificate", p.ca)
		}
	}
	if p.cert == "" {
		return c, nil
	}
	if err := checkPrivate(p.key); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, fmt.Errorf("cannot use certificate %q with its key: %w", p.cert, err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// reloadingCredentials reads the certificates' files again for each handshake: agents live
// longer than certificates are valid, and the files are renewed before that. The check of
// a server is left to gRPC's own credentials, which alone know how.
type reloadingCredentials struct {
	credentials.TransportCredentials // of the files as they were at first
	reloader                         *tlsReloader
}

// tlsReloader remembers the last usable configuration.
type tlsReloader struct {
	config config

	mu       sync.Mutex
	lastGood *tls.Config
	warned   string // the error that was logged since
}

func newReloadingCredentials(p config, first *tls.Config) reloadingCredentials {
	return reloadingCredentials{credentials.NewTLS(first), &tlsReloader{config: p, lastGood: first}}
}

func (r reloadingCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(r.reloader.reload()).ClientHandshake(ctx, authority, conn)
}

func (r reloadingCredentials) Clone() credentials.TransportCredentials {
	return reloadingCredentials{r.TransportCredentials.Clone(), r.reloader}
}

// reload returns the former configuration as long as the files cannot be used, as while
// only some of them are renewed.
func (l *tlsReloader) reload() *tls.Config {
	c, err := l.config.loadTLS()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.lastGood, l.warned = c, ""
	} else if l.warned != err.Error() {
		l.warned = err.Error()
		slog.Warn("etcd's credentials cannot be read again: those of before are used", "error", err)
	}
	return l.lastGood
}
