package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc/credentials"
)

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
