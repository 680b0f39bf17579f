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

// tlsConfig is what the files of the place are at this moment.
func (p place) tlsConfig() (*tls.Config, error) {
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
	if err := private(p.key); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, fmt.Errorf("cannot use certificate %q with its key: %w", p.cert, err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// renewed are credentials whose files are read again for each handshake: they are
// renewed before they expire, and agents live longer than they are valid. What is
// made of them goes to gRPC's own credentials, which alone know how to check a
// server.
type renewed struct {
	credentials.TransportCredentials // of what was read at first
	last                             *lastConfig
}

// lastConfig is what was read last of the files of a place.
type lastConfig struct {
	place place

	mu     sync.Mutex
	config *tls.Config // that could be read
	said   string      // what could not be read since
}

func renewedCredentials(p place, first *tls.Config) renewed {
	return renewed{credentials.NewTLS(first), &lastConfig{place: p, config: first}}
}

func (r renewed) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(r.last.readFiles()).ClientHandshake(ctx, authority, conn)
}

func (r renewed) Clone() credentials.TransportCredentials {
	return renewed{r.TransportCredentials.Clone(), r.last}
}

// readFiles reads the files. As long as they cannot be used, as while only some of them
// are renewed, what they were before is.
func (l *lastConfig) readFiles() *tls.Config {
	c, err := l.place.tlsConfig()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.config, l.said = c, ""
	} else if l.said != err.Error() {
		l.said = err.Error()
		slog.Warn("etcd's credentials cannot be read again: those of before are used", "error", err)
	}
	return l.config
}
