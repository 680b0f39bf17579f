package etcd

import (
	"bytes"
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
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
)

// dial makes a client of the endpoints. If there is a user it logs in, which needs an answer; otherwise it
// returns without one.
func dial(ctx context.Context, p config, a *authenticator) (*clientv3.Client, error) {
	options := append(dialOptions(), grpc.WithChainUnaryInterceptor(a.intercept))
	secure := (*tls.Config)(nil)

	if p.tls {
		var err error
		if secure, err = p.loadTLS(); err != nil {
			return nil, err
		}

		options = append(
			options,
			grpc.WithTransportCredentials(reloadingCredentials{credentials.NewTLS(secure), &tlsReloader{
				config:   p,
				lastGood: secure,
			}}),
		)
	}

	password, err := p.readPassword()
	if err != nil {
		return nil, err
	}

	patience := openTimeout
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline))
	}

	client, err := clientv3.New(clientv3.Config{
		Endpoints:   p.endpoints,
		TLS:         secure,
		Username:    p.user,
		Password:    password,
		Logger:      zap.NewNop(),
		DialOptions: options,
		DialTimeout: max(patience, time.Millisecond),
		// The keep-alive time is the shortest that gRPC allows. gRPC measures it by the machine's clock. If
		// that is set back, gRPC takes the connection for silent, and makes another.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		MaxUnaryRetries:      2, // one more after a token has expired; retry makes all others
	})

	switch {
	case err == nil:
		return client, nil
	case isTransient(err):
		return nil, unreachableError(ctx, p, err)
	}

	return nil, mapKnownError(err)
}

// dialOptions makes gRPC dial an absent member every other second. By default gRPC dials ever more seldom, so
// that agents would come back late after a long outage.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.3, MaxDelay: 2 * time.Second},
		MinConnectTimeout: 3 * time.Second,
	})}
}

// readPassword reads the password file, each time that it is needed, since it may be replaced.
func (p config) readPassword() (string, error) {
	if p.passwordFile == "" {
		return "", nil
	}
	if err := checkPrivate(p.passwordFile); err != nil {
		return "", err
	}

	data, err := os.ReadFile(p.passwordFile)
	if err != nil {
		return "", err
	}

	data = bytes.TrimRight(data, "\r\n")
	if len(data) == 0 {
		return "", fmt.Errorf("file %q holds no password", p.passwordFile)
	}

	return string(data), nil
}

// checkPrivate returns an error if other users may read the file.
func checkPrivate(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("file %q can be read by others: chmod 600 it", file)
	}

	return nil
}

// healthTimeout bounds the answer of one endpoint.
const healthTimeout = 2 * time.Second

// queryStatus asks all endpoints for their status at once.
func (d *db) queryStatus(ctx context.Context, endpoints []string) ([]*clientv3.StatusResponse, []error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()

	said := make([]*clientv3.StatusResponse, len(endpoints))
	errs := make([]error, len(endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		asking.Go(func() { said[i], errs[i] = d.client.Status(ctx, endpoint) })
	}
	asking.Wait()
	return said, errs
}

// Health asks each endpoint by itself, and returns its state in words, or why it does not answer.
func (d *db) Health(ctx context.Context) map[string]string {
	all := map[string]string{}
	said, errs := d.queryStatus(ctx, d.config.endpoints)

	for i, s := range said {
		switch endpoint := d.config.endpoints[i]; {
		case errs[i] != nil:
			all[endpoint] = "does not answer: " + errs[i].Error()
		case s.Leader == 0:
			all[endpoint] = fmt.Sprintf("etcd %s sees no leader: it is cut off, or too few members live",
				s.Version)
		case s.Leader == s.Header.MemberId:
			all[endpoint] = fmt.Sprintf("etcd %s, leads, %d MiB", s.Version, s.DbSize>>20)
		default:
			all[endpoint] = fmt.Sprintf("etcd %s, follows, %d MiB", s.Version, s.DbSize>>20)
		}
	}

	return all
}

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

// intercept gives etcd's client the current password whenever it logs in.
func (a *authenticator) intercept(
	ctx context.Context,
	method string,
	req, reply any,
	conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	login, ok := req.(*pb.AuthenticateRequest)
	if !ok {
		return invoke(ctx, method, req, reply, conn, opts...)
	}

	password, err := a.config.readPassword()
	if err != nil {
		return err
	}
	if err := a.activeRefusal(password); err != nil {
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

// recordResult records whether etcd accepted the password. Errors that are not etcd's answer leave the
// record unchanged.
func (a *authenticator) recordResult(password string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	switch {
	case err == nil:
		a.refusal = nil
		a.backoff = 0
	case errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed):
		a.refusal = err
		a.refusedPassword = password
		a.backoff = min(max(2*a.backoff, firstLoginBackoff), maxLoginBackoff)
		a.retryAt = a.now().Add(a.backoff)
	}
}

func (a *authenticator) isRefused() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refusal != nil
}

// loadTLS reads the certificates that the URL names.
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

func (r reloadingCredentials) ClientHandshake(
	ctx context.Context,
	authority string,
	conn net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
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
		l.lastGood = c
		l.warned = ""
	} else if l.warned != err.Error() {
		l.warned = err.Error()
		slog.Warn("cannot read etcd's credentials again: using the previous ones", "error", err)
	}

	return l.lastGood
}
