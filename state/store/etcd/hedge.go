package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"bijou/state/backoff"
	"bijou/state/store"
)

const (
	// minHedgeDelay is the shortest time before hedgeRead queries a second member.
	minHedgeDelay = 200 * time.Millisecond
	// eagerHedgeDelay replaces minHedgeDelay if a second member was needed within the last eagerHedgeWindow,
	// since reads go to the silent member again and again.
	eagerHedgeDelay  = 10 * time.Millisecond
	eagerHedgeWindow = 10 * time.Second
	// The delay is also at least hedgeFactor times the duration of the last read.
	hedgeFactor = 5
)

// hedgeRead calls f, which must only read, and returns the first answer. If a call has not answered after a
// delay, or has failed while another is running, hedgeRead makes a further call without waiting for the
// running ones, up to a limit. If there is only one endpoint, it makes only one call. It returns an error only
// once all its calls have failed.
//
// Each call goes to the next connected member, since a member that is cut off from the other members does not
// answer. The delay doubles before each further call. It also grows with the duration of the last read, since
// more calls would not help if all members are slow.
func hedgeRead[T any](ctx context.Context, d *db, f func(ctx context.Context) (T, error)) (value T, err error) {
	if len(d.config.endpoints) == 1 {
		// There is no other member to ask.
		return f(ctx)
	}
	// A new connection can lead to the same member again, so allow one call more than there are members.
	maxCalls := len(d.config.endpoints) + 1

	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	// Deferred calls run last first: cancel ends the calls that are still running.
	defer calls.Wait()
	defer cancel()
	results := make(chan error, maxCalls) // buffered, since nobody receives late results
	var once sync.Once

	call := func() {
		began := time.Now()
		v, err := f(ctx)
		if err == nil {
			once.Do(func() { value = v })
		}

		// A call that was canceled after another call's answer says nothing about the members' speed.
		timedOut := errors.Is(ctx.Err(), context.DeadlineExceeded)
		if err == nil || timedOut {
			d.readLatency.Store(int64(time.Since(began)))
		}
		results <- err
	}

	delay := d.hedgeDelay()
	started := 0
	failed := 0
	for {
		if started < maxCalls {
			calls.Go(call)
			started++
		}

		select {
		case err := <-results:
			if err == nil {
				// For a while after this time, hedgeDelay has a shorter minimum.
				if started > 1 {
					d.lastHedge.Store(time.Now().UnixNano())
				}
				return value, nil
			}
			failed++
			if failed == started {
				return value, err
			}
		case <-time.After(delay << (started - 1)):
		}
	}
}

// hedgeDelay returns how long hedgeRead waits for an answer to its first call before it makes a second call.
func (d *db) hedgeDelay() time.Duration {
	delay := minHedgeDelay
	// If a read has just needed a second member, the next reads may also need one.
	if time.Since(time.Unix(0, d.lastHedge.Load())) < eagerHedgeWindow {
		delay = eagerHedgeDelay
	}
	return max(delay, hedgeFactor*time.Duration(d.readLatency.Load()))
}

const (
	// callTimeout limits a call, including its repetitions.
	callTimeout = 30 * time.Second
	// commitTimeout limits a request that writes. etcd itself gives up after seven seconds.
	commitTimeout = 10 * time.Second
	// firstAttemptTimeout is how long the first attempt of retry waits for a member. Later attempts wait longer,
	// since the members may be slow.
	firstAttemptTimeout = 2 * time.Second
	maxBackoff          = time.Second // between attempts
)

// retry calls f again while its error is transient, for at most callTimeout. f must be repeatable, since etcd may
// have carried out a call that it did not answer. Each call can reach a different member. retry returns an
// error that storeError has translated, such as ErrAway if no member answers.
func (d *db) retry(ctx context.Context, f func(ctx context.Context) error) error {
	bound, cancel := d.Bound(ctx, callTimeout)
	defer cancel()

	for n := 0; ; n++ {
		// The timeout doubles with each attempt, at most four times.
		attemptCtx, cancelAttempt := context.WithTimeout(bound, firstAttemptTimeout<<min(n, 4))
		err := f(attemptCtx)
		cancelAttempt()
		if err == nil {
			return nil
		}
		if !isTransient(err) || waitBackoff(bound, n) != nil {
			return d.storeError(ctx, d.connectionError(err))
		}
	}
}

// retryUnknownToken calls f again only if a member does not know the login's token, for at most callTimeout.
// Such a member has not carried out the call. retryUnknownToken is for calls that must not be repeated after
// other errors.
func (d *db) retryUnknownToken(ctx context.Context, f func() error) error {
	bound, cancel := d.Bound(ctx, callTimeout)
	defer cancel()

	for n := 0; ; n++ {
		err := f()
		if !isUnknownToken(err) || waitBackoff(bound, n) != nil {
			return err
		}
	}
}

// connectionError returns the reason why the client cannot connect to any member, if it can find out. Otherwise
// it returns err. It is called because the error of a call often reports only a timeout.
func (d *db) connectionError(err error) error {
	conn := d.client.ActiveConnection()
	if !isTransient(err) || conn.GetState() != connectivity.TransientFailure {
		return err
	}

	// Without WaitForReady, a call fails immediately with the reason of the last failed connection.
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, reason := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte(d.keys.markerKey())},
		grpc.WaitForReady(false))
	if grpcCode(reason) == codes.Unavailable {
		return reason
	}

	return err
}

// waitBackoff waits before the next attempt, longer after more failures. It returns ctx's error if ctx is done.
func waitBackoff(ctx context.Context, failures int) error {
	return backoff.Sleep(ctx, backoff.Delay(failures, 20*time.Millisecond, maxBackoff))
}

// get reads with retries. The read is linearizable, unless an option makes it serializable.
func (d *db) get(ctx context.Context, key string, opts ...clientv3.OpOption) (resp *clientv3.GetResponse, err error) {
	op := clientv3.OpGet(key, opts...)
	err = d.retry(ctx, func(ctx context.Context) error {
		before := d.history.lastSeen()
		resp, err = hedgeRead(ctx, d, func(ctx context.Context) (*clientv3.GetResponse, error) {
			return d.client.Get(ctx, key, opts...)
		})
		if err != nil {
			return err
		}

		// A serializable answer may come from a member that is behind, which proves nothing about the history.
		if !op.IsSerializable() {
			d.observeResponse(before, resp.Header)
		}

		return nil
	})

	return resp, err
}

// waitReady waits until a member is connected. Callers call it before a request that writes: if waitReady
// returns an error, nothing was written.
func (d *db) waitReady(ctx context.Context) error {
	if d.client.ActiveConnection().GetState() == connectivity.Ready {
		return nil
	}

	// A read can be repeated until a member answers, for at most callTimeout.
	_, err := d.get(ctx, d.keys.markerKey(), clientv3.WithCountOnly())
	return err
}

// storeError translates an error of etcd's client into one of package store, or adds an explanation in plain
// words. It returns unknown errors unchanged. If the handle is closed or the store is gone, storeError returns
// ErrClosed or ErrStoreGone instead. ctx is the context of the caller of the store.
func (d *db) storeError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	// Background, since only a closed handle or a lost store matters here. The end of ctx is explained below.
	if unusable := d.CheckUsable(context.Background()); unusable != nil {
		return unusable
	}

	noAnswer := ctx.Err() != nil || isTransient(err)
	// A refused login is often the reason why there is no answer.
	if d.auth.isRefused() && (noAnswer || errors.Is(err, rpctypes.ErrAuthFailed)) {
		return mapKnownError(rpctypes.ErrAuthFailed)
	}
	if noAnswer {
		return unreachableError(ctx, d.config, err)
	}

	return mapKnownError(err)
}

// mapKnownError translates the errors of etcd that have a known cause. It returns other errors unchanged.
func mapKnownError(err error) error {
	for _, m := range []struct{ etcd, store error }{
		{rpctypes.ErrCompacted, store.ErrHistoryLost},
		{rpctypes.ErrLeaseNotFound, store.ErrLeaseLost},
		{rpctypes.ErrTooManyOps, fmt.Errorf("%w: etcd runs with a --max-txn-ops below its default of 128", store.ErrTooLarge)},
		{rpctypes.ErrRequestTooLarge, fmt.Errorf("%w: etcd runs with a --max-request-bytes below its default of 1.5 MiB", store.ErrTooLarge)},
		{rpctypes.ErrNoSpace, fmt.Errorf("etcd's database is full: compact it, defragment it, then disarm its alarm: %w", rpctypes.ErrNoSpace)},
		{rpctypes.ErrPermissionDenied, fmt.Errorf("etcd's user cannot read and write the whole prefix: %w", rpctypes.ErrPermissionDenied)},
		{rpctypes.ErrAuthFailed, fmt.Errorf("etcd refuses the login: wrong user or password: %w", rpctypes.ErrAuthFailed)},
		{rpctypes.ErrUserEmpty, fmt.Errorf("etcd requires a user: give ?user=NAME&password-file=FILE: %w", rpctypes.ErrUserEmpty)},
	} {
		if errors.Is(err, m.etcd) {
			return m.store
		}
	}

	return err
}

// isTransient reports whether the same call may succeed a moment later, or on another member. A commit that
// failed with such an error may have been written.
func isTransient(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}

	switch grpcCode(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted:
		return true
	}

	return errors.Is(err, rpctypes.ErrTooManyRequests) || isUnknownToken(err)
}

// isUnknownToken reports whether a member did not know the login's token. A member that is behind learns of a
// new token later. The member has not carried out the call.
func isUnknownToken(err error) bool {
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision)
}

// grpcCode returns the gRPC code of an error from etcd's client.
func grpcCode(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	return status.Code(err)
}

// unreachableError returns an error that says that etcd does not answer, or that its certificates prevent a
// connection, with the reason from err. The error wraps ErrAway. If ctx was canceled, it is ctx's error instead.
func unreachableError(ctx context.Context, p config, err error) error {
	// Unlike the text of the error, the message of its status does not begin with words from gRPC.
	text := status.Convert(err).Message()
	why := fmt.Sprintf("etcd at %s does not answer: %s", p.endpointList(), text)
	if strings.Contains(text, "tls: ") || strings.Contains(text, "x509: ") {
		why = fmt.Sprintf("cannot connect to etcd at %s because of its certificates: %s", p.endpointList(), text)
	}
	if ctx.Err() != nil {
		return store.OverdueError(ctx, why)
	}

	return store.AwayError(why, err)
}
