package etcd

import (
	"context"
	"errors"
	"log/slog"
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
	last     string // the password that could be read last
	unread   string // why the file cannot be read since; empty: it can
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
	password, refusal := l.next(login.Password)
	if refusal != nil {
		return refusal
	}
	err := invoke(ctx, method, &pb.AuthenticateRequest{Name: login.Name, Password: password}, reply, conn, opts...)
	l.note(password, err)
	return err
}

// next is the password to log in with, or why that is not tried yet.
func (l *logins) next(first string) (password string, refusal error) {
	password, err := l.place.password()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		l.last = first
	}
	switch {
	case err == nil:
		l.last, l.unread = password, ""
	case l.unread != err.Error():
		l.unread = err.Error()
		slog.Warn("etcd's password cannot be read again: that of before is used", "error", err)
	}
	if l.refusal != nil && l.tried == l.last && l.now().Before(l.nextTime) {
		return "", l.refusal
	}
	return l.last, nil
}

// note takes up how a login has ended. What is no answer says nothing of the password.
func (l *logins) note(password string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.refusal, l.pause = nil, 0
	case errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed):
		if l.tried != password {
			l.pause = 0
		}
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
