package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	retries "bijou/state/backoff"
	"bijou/state/osutil"
	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

const (
	// callTimeout bounds a call with its repetitions, while the gateway does not answer.
	callTimeout = 30 * time.Second
	maxBackoff  = time.Second // between attempts
	maxResponse = 8 << 20
)

// dial returns a connection to the gateway's socket, and does not wait for the gateway. gRPC dials again
// every other second at least, so that agents are back soon after a long outage. A gateway that hangs is
// noticed by its silence.
func dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // it is a socket of this host
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return dialSocket(ctx, socket)
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.3, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 3 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
		grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(maxResponse)),
	)
}

func dialSocket(ctx context.Context, socket string) (conn net.Conn, err error) {
	err = osutil.WithShortPath(socket, func(short string) (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", short)
		return err
	})
	return conn, err
}

// retry calls f, which must be repeatable, until the gateway answers. The store is gone for ever once
// two answers are of an older copy: after the first one f is called again.
func (d *db) retry(ctx context.Context, f func(ctx context.Context) error) error {
	bound, cancel := d.Bound(ctx, callTimeout)
	defer cancel()

	older := false
	for n := 0; ; n++ {
		err := f(bound)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errOlder) && older:
			return d.goneAs(err)
		case errors.Is(err, errOlder):
			older = true
			slog.Warn("the gateway is asked again", "socket", d.socket, "reason", err)
		case !isTransient(err):
			return d.storeError(ctx, err)
		}

		if waitBackoff(bound, n) != nil {
			return d.storeError(ctx, err)
		}
	}
}

func waitBackoff(ctx context.Context, failures int) error {
	return retries.Sleep(ctx, retries.Delay(failures, 20*time.Millisecond, maxBackoff))
}

// isTransient reports whether the same call may succeed a moment later. Of a commit it leaves open
// what has happened.
func isTransient(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// storeError returns the store's own error for one of a call.
func (d *db) storeError(ctx context.Context, err error) error {
	if closed := d.CheckUsable(context.Background()); closed != nil {
		return closed
	}

	if !isTransient(err) {
		err = protocol.FromStatus(err)
		if errors.Is(err, store.ErrStoreGone) {
			return d.MarkGoneBecause(err)
		}
		return err
	}

	why := fmt.Sprintf("the gateway at %s does not answer: %s", d.socket, status.Convert(err).Message())
	if ctx.Err() != nil {
		return store.OverdueError(ctx, why)
	}
	return store.AwayError(why, err)
}
