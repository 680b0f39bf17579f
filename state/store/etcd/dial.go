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

// dial returns a client for the endpoints. The client's logins go through a. If the URL names a user, dial logs in
// and waits for the answer. Otherwise it does not wait for a connection.
func dial(ctx context.Context, p config, a *authenticator) (*clientv3.Client, error) {
	options := append(dialOptions(), grpc.WithChainUnaryInterceptor(a.intercept))
	var tlsConfig *tls.Config // nil without TLS
	if p.tls {
		loaded, err := p.loadTLS()
		if err != nil {
			return nil, err
		}

		tlsConfig = loaded
		// The files can be renewed while the client is in use, so each handshake reads them again.
		reloader := &tlsReloader{config: p, lastGood: tlsConfig}
		reloading := reloadingCredentials{credentials.NewTLS(tlsConfig), reloader}
		options = append(options, grpc.WithTransportCredentials(reloading))
	}

	password, err := p.readPassword()
	if err != nil {
		return nil, err
	}

	// The client does not know ctx, so give it the time that ctx leaves.
	loginTimeout := openTimeout
	if deadline, ok := ctx.Deadline(); ok {
		loginTimeout = min(loginTimeout, time.Until(deadline))
	}

	client, err := clientv3.New(clientv3.Config{
		Endpoints:   p.endpoints,
		TLS:         tlsConfig,
		Username:    p.user,
		Password:    password,
		Logger:      zap.NewNop(),
		DialOptions: options,
		DialTimeout: max(loginTimeout, time.Millisecond), // 0 or less would mean no timeout
		// The keep-alive time is the shortest that gRPC allows. gRPC measures it by the host's clock. If
		// the clock is set back, gRPC takes the connection for silent, and opens another connection.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		// This is the number of attempts. The second attempt is for an expired token. After other errors,
		// db.retry repeats the call.
		MaxUnaryRetries: 2,
	})
	if err != nil && isTransient(err) {
		return nil, unreachableError(ctx, p, err)
	}
	if err != nil {
		return nil, mapKnownError(err)
	}

	return client, nil
}

// dialOptions returns options that make gRPC wait for less than three seconds between two attempts to dial an
// unreachable member. By default the delays grow to two minutes, so that agents would reconnect late after a
// long outage.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
		Backoff: backoff.Config{
			BaseDelay:  100 * time.Millisecond,
			Multiplier: 1.6,
			Jitter:     0.3,
			MaxDelay:   2 * time.Second,
		},
		MinConnectTimeout: 3 * time.Second,
	})}
}

// readPassword returns the password in the password file, or "" if the URL names no file. It is called for each
// login, since the file may be replaced. It returns an error if other users have access to the file, or if the
// file contains no password.
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
		return "", fmt.Errorf("file %q contains no password", p.passwordFile)
	}

	return string(data), nil
}

// checkPrivate returns an error if the file's mode grants anything to other users.
func checkPrivate(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("other users have access to the file %[1]q; run: chmod 600 %[1]q", file)
	}

	return nil
}

// healthTimeout is how long queryStatus waits for the answers of the endpoints.
const healthTimeout = 2 * time.Second

// queryStatus requests the status of all endpoints at the same time. The results have the order of the
// endpoints. An endpoint's status is valid only if its error is nil.
func (d *db) queryStatus(ctx context.Context, endpoints []string) ([]*clientv3.StatusResponse, []error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()

	statuses := make([]*clientv3.StatusResponse, len(endpoints))
	errs := make([]error, len(endpoints))
	var queries sync.WaitGroup
	for i, endpoint := range endpoints {
		queries.Go(func() { statuses[i], errs[i] = d.client.Status(ctx, endpoint) })
	}
	queries.Wait()
	return statuses, errs
}

// Health queries all endpoints at the same time. For each endpoint it returns the state in words, or the reason
// why the endpoint does not answer.
func (d *db) Health(ctx context.Context) map[string]string {
	states := map[string]string{}
	statuses, errs := d.queryStatus(ctx, d.config.endpoints)

	for i, s := range statuses {
		endpoint := d.config.endpoints[i]
		switch {
		case errs[i] != nil:
			states[endpoint] = "does not answer: " + errs[i].Error()
		case s.Leader == 0:
			states[endpoint] = fmt.Sprintf("etcd %s has no leader: it is cut off, or too few members are alive",
				s.Version)
		case s.Leader == s.Header.MemberId:
			states[endpoint] = fmt.Sprintf("etcd %s, leads, %d MiB", s.Version, s.DbSize>>20)
		default:
			states[endpoint] = fmt.Sprintf("etcd %s, follows, %d MiB", s.Version, s.DbSize>>20)
		}
	}

	return states
}

const (
	// firstLoginBackoff is the time before a refused password is tried again. It doubles after each
	// refusal, up to maxLoginBackoff.
	firstLoginBackoff = time.Second
	maxLoginBackoff   = 30 * time.Second
)

// authenticator makes etcd's client log in with the current content of the password file. By itself the
// client would always use the password that it was created with. After etcd has refused a password, the
// authenticator refuses further logins with this password for a while, longer after each refusal. It tries a
// different password immediately.
type authenticator struct {
	config config
	now    func() time.Time

	mu              sync.Mutex
	refusedPassword string
	refusal         error // etcd's error; nil if the last login was not refused
	backoff         time.Duration
	retryAt         time.Time
}

// intercept gives etcd's client the current password whenever it logs in. If etcd has refused this password shortly
// before, intercept returns that refusal and sends no request. It passes on all other calls unchanged.
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
	// After etcd has refused a password, do not send it again for a while.
	if err := a.activeRefusal(password); err != nil {
		return err
	}

	err = invoke(ctx, method, &pb.AuthenticateRequest{Name: login.Name, Password: password}, reply, conn, opts...)
	a.recordResult(password, err)
	return err
}

// activeRefusal returns etcd's refusal of the password if the password must not be tried again yet. Otherwise
// it returns nil.
func (a *authenticator) activeRefusal(password string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refusedPassword == password && a.now().Before(a.retryAt) {
		return a.refusal
	}
	return nil
}

// recordResult records whether etcd accepted the password. It ignores errors that are not etcd's answer to
// the login.
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

// isRefused reports whether etcd has refused the last login.
func (a *authenticator) isRefused() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refusal != nil
}

// loadTLS returns a TLS configuration with the certificates that the URL names. Without ca, the configuration trusts
// the system's authorities. Without cert, it has no certificate of this process. It returns an error if other users
// have access to the file key.
func (p config) loadTLS() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.ca != "" {
		pem, err := os.ReadFile(p.ca)
		if err != nil {
			return nil, err
		}

		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("file %q contains no certificate", p.ca)
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

// reloadingCredentials reads the certificates' files again for each handshake. Agents run for longer than a
// certificate is valid, and the files are renewed in the meantime. Each handshake verifies the server as usual.
type reloadingCredentials struct {
	credentials.TransportCredentials // made from the files when the store was opened
	reloader                         *tlsReloader
}

// tlsReloader keeps the last usable configuration.
type tlsReloader struct {
	config config

	mu          sync.Mutex
	lastGood    *tls.Config
	lastWarning string // the last logged error; empty after a success
}

// ClientHandshake does a TLS handshake with the certificates that the files have now. If it cannot use the
// files, it uses their last usable content.
func (r reloadingCredentials) ClientHandshake(
	ctx context.Context,
	authority string,
	conn net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(r.reloader.reload()).ClientHandshake(ctx, authority, conn)
}

// Clone returns credentials with the same reloader.
func (r reloadingCredentials) Clone() credentials.TransportCredentials {
	return reloadingCredentials{r.TransportCredentials.Clone(), r.reloader}
}

// reload returns the configuration of the files. If it cannot use the files, for example while only some of
// them are renewed, it returns the previous configuration. It does not log the same error twice in a row.
func (l *tlsReloader) reload() *tls.Config {
	c, err := l.config.loadTLS()
	l.mu.Lock()
	defer l.mu.Unlock()

	if err == nil {
		l.lastGood = c
		l.lastWarning = ""
	} else if l.lastWarning != err.Error() {
		l.lastWarning = err.Error()
		slog.Warn("cannot read etcd's credentials again: using the previous ones", "error", err)
	}

	return l.lastGood
}
