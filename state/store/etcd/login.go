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
	// firstLoginPause is how long a password that etcd has refused is not tried again,
	// twice as long each time.
	firstLoginPause = time.Second
	maxLoginPause   = 30 * time.Second
)

// logins has etcd's client, which logs in again and again with what it was given at first,
// do so with what the password's file holds by then. A password that etcd has refused is
// tried again later and later; another one at once.
type logins struct {
	place place
	now   func() time.Time

	mu       sync.Mutex
	tried    string // the password that was refused
	refusal  error  // nil: the last login was not refused
	pause    time.Duration
	nextTime time.Time
}

// intercept is a gRPC interceptor.
func (l *logins) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	login, ok := req.(*pb.AuthenticateRequest)
	if !ok {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	password, err := l.place.password()
	if err == nil {
		err = l.held(password)
	}
	if err != nil {
		return err
	}
	err = invoke(ctx, method, &pb.AuthenticateRequest{Name: login.Name, Password: password}, reply, conn, opts...)
	l.note(password, err)
	return err
}

// held is why that password is not tried yet; nil: it may be.
func (l *logins) held(password string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tried == password && l.now().Before(l.nextTime) {
		return l.refusal
	}
	return nil
}

// note takes up how a login has ended. What is no answer says nothing of the password.
func (l *logins) note(password string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.refusal, l.pause = nil, 0
	case errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed):
		l.refusal, l.tried = err, password
		l.pause = min(max(2*l.pause, firstLoginPause), maxLoginPause)
		l.nextTime = l.now().Add(l.pause)
	}
}

// refused reports whether etcd has refused the last login.
func (l *logins) refused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusal != nil
}
