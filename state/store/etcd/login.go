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
