package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

const (
	// firstLoginBackoff is how long a password that etcd has refused is not tried again,
	// twice as long each time.
	firstLoginBackoff = time.Second
	maxLoginBackoff   = 30 * time.Second
)

// authenticator has etcd's client, which logs in again and again with what it was given at first,
// do so with what the password's file holds by then. A password that etcd has refused is
// tried again later and later; another one at once.
type authenticator struct {
	config config
	now    func() time.Time

	mu              sync.Mutex
	refusedPassword string // the password that was refused
	refusal         error  // nil: the last login was not refused
	backoff         time.Duration
	retryAt         time.Time
}

// intercept is a gRPC interceptor.
func (l *authenticator) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	login, ok := req.(*pb.AuthenticateRequest)
	if !ok {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	password, err := l.config.readPassword()
	if err == nil {
		err = l.activeRefusal(password)
	}
	if err != nil {
		return err
	}
	err = invoke(ctx, method, &pb.AuthenticateRequest{Name: login.Name, Password: password}, reply, conn, opts...)
	l.recordResult(password, err)
	return err
}

// activeRefusal is why that password is not tried yet; nil: it may be.
func (l *authenticator) activeRefusal(password string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusedPassword == password && l.now().Before(l.retryAt) {
		return l.refusal
	}
	return nil
}

// recordResult takes up how a login has ended. What is no answer says nothing of the password.
func (l *authenticator) recordResult(password string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.refusal, l.backoff = nil, 0
	case errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed):
		l.refusal, l.refusedPassword = err, password
		l.backoff = min(max(2*l.backoff, firstLoginBackoff), maxLoginBackoff)
		l.retryAt = l.now().Add(l.backoff)
	}
}

// isRefused reports whether etcd has refused the last login.
func (l *authenticator) isRefused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusal != nil
}
