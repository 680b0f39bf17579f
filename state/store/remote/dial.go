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
	// callTimeout limits a call, including its repetitions.
	callTimeout = 30 * time.Second
	maxBackoff  = time.Second // between attempts
	maxResponse = 8 << 20     // bytes
)

// dial returns a connection to the gateway's socket, without waiting for the gateway. If the gateway cannot be
// reached, gRPC waits less than three seconds before it dials again, so that agents reconnect soon after a long
// outage. Keep-alives detect a gateway that hangs.
func dial(socket string) (*grpc.ClientConn, error) {
	// The dialer below ignores this address.
	return grpc.NewClient("passthrough:///localhost",
		// The socket is on this host, so TLS is not necessary.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return dialSocket(ctx, socket)
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay:  100 * time.Millisecond,
				Multiplier: 1.6,
				Jitter:     0.3,
				MaxDelay:   2 * time.Second,
			},
			MinConnectTimeout: 3 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
		grpc.WithIdleTimeout(0), // the connection stays open while it is idle
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(maxResponse)),
	)
}

// dialSocket connects to the socket. The socket's path can be longer than the kernel allows for addresses.
func dialSocket(ctx context.Context, socket string) (conn net.Conn, err error) {
	err = osutil.WithShortPath(socket, func(short string) (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", short)
		return err
	})
	return conn, err
}

// retry calls f again while its error is transient, for at most callTimeout. f must be repeatable. If an answer
// comes from an older copy of the store, retry also calls f again. After a second such answer, it marks the store
// as gone. It returns other errors as storeError translates them, such as ErrAway if the gateway does not answer.
func (d *db) retry(ctx context.Context, f func(ctx context.Context) error) error {
	bound, cancel := d.Bound(ctx, callTimeout)
	defer cancel()

	metOlderCopy := false
	for n := 0; ; n++ {
		err := f(bound)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errOlder) && metOlderCopy:
			return d.markReplaced(err)
		case errors.Is(err, errOlder):
			metOlderCopy = true
			slog.Warn("connecting to the gateway again", "socket", d.socket, "reason", err)
		case !isTransient(err):
			return d.storeError(ctx, err)
		}

		// The gateway does not answer now, or has served an older copy for the first time.
		if waitBackoff(bound, n) != nil {
			return d.storeError(ctx, err)
		}
	}
}

// waitBackoff waits before the next attempt, longer after more failures. It returns ctx's error if ctx is done.
func waitBackoff(ctx context.Context, failures int) error {
	return retries.Sleep(ctx, retries.Delay(failures, 20*time.Millisecond, maxBackoff))
}

// isTransient reports whether the same call may succeed a moment later. A commit that failed with such an
// error may have been written.
func isTransient(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// storeError translates the error of a call into an error of package store. If that is ErrStoreGone, storeError
// marks the store as gone. If the handle is closed or the store is already marked as gone, storeError returns the
// error of CheckUsable instead. ctx is the context of the caller of the store.
func (d *db) storeError(ctx context.Context, err error) error {
	// Background, since only a closed handle or a lost store matters here. The end of ctx is explained below.
	if unusable := d.CheckUsable(context.Background()); unusable != nil {
		return unusable
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
