package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// dial waits for an answer only if there is a user to log in.
func dial(ctx context.Context, p config, a *authenticator) (*clientv3.Client, error) {
	options, secure := append(dialOptions(), grpc.WithChainUnaryInterceptor(a.intercept)), (*tls.Config)(nil)
	if p.tls {
		var err error
		if secure, err = p.loadTLS(); err != nil {
			return nil, err
		}
		options = append(options, grpc.WithTransportCredentials(newReloadingCredentials(p, secure)))
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
		Endpoints: p.endpoints, TLS: secure, Username: p.user, Password: password,
		Logger: zap.NewNop(), DialOptions: options, DialTimeout: max(patience, time.Millisecond),
		// The first is what gRPC allows at least. It measures by the machine's clock: where that
		// is set back, it takes a connection for silent, and makes another.
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		MaxUnaryRetries: 2, // one more after a token has expired; the rest is retry's
	})
	switch {
	case err == nil:
		return client, nil
	case isTransient(err):
		return nil, unreachableError(ctx, p, err)
	}
	return nil, mapKnownError(err)
}

// dialOptions has gRPC try members that are away every other second, and not ever
// more seldom: after an outage of an hour agents are to be back soon.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.3, MaxDelay: 2 * time.Second},
		MinConnectTimeout: 3 * time.Second,
	})}
}

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

func checkPrivate(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("file %q may be read by others: chmod 600 it", file)
	}
	return nil
}

// healthTimeout bounds the answer of one endpoint.
const healthTimeout = 2 * time.Second

func (d *db) queryStatus(ctx context.Context, endpoints []string) ([]*clientv3.StatusResponse, []error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	said, errs := make([]*clientv3.StatusResponse, len(endpoints)), make([]error, len(endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		asking.Go(func() { said[i], errs[i] = d.client.Status(ctx, endpoint) })
	}
	asking.Wait()
	return said, errs
}

// Health asks each endpoint by itself, and returns its state in words, or why it does not
// answer.
func (d *db) Health(ctx context.Context) map[string]string {
	all := map[string]string{}
	said, errs := d.queryStatus(ctx, d.config.endpoints)
	for i, s := range said {
		switch endpoint := d.config.endpoints[i]; {
		case errs[i] != nil:
			all[endpoint] = "does not answer: " + errs[i].Error()
		case s.Leader == 0:
			all[endpoint] = fmt.Sprintf("etcd %s sees no leader: it is cut off, or too few members live", s.Version)
		case s.Leader == s.Header.MemberId:
			all[endpoint] = fmt.Sprintf("etcd %s, leads, %d MiB", s.Version, s.DbSize>>20)
		default:
			all[endpoint] = fmt.Sprintf("etcd %s, follows, %d MiB", s.Version, s.DbSize>>20)
		}
	}
	return all
}
