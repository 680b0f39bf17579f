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
	minHedgeDelay    = 200 * time.Millisecond // before another member is asked
	hedgeFactor      = 5                      // but not before so many times what the last read took
	eagerHedgeDelay  = 10 * time.Millisecond  // instead of minHedgeDelay, while hedging has helped within
	eagerHedgeWindow = 10 * time.Second       // this time: the silent member's turn comes again and again
)

// hedgeRead calls f, a read, and calls it again beside the first call if that takes long. The first answer
// counts. Each call goes to the next connected member, since a member that is cut off from the others does
// not say so. The delay before each further call doubles. It also grows with the time of the last read,
// since more calls would not help if all members are slow.
func hedgeRead[T any](ctx context.Context, d *db, f func(ctx context.Context) (T, error)) (value T, err error) {
	// It is one more than there are members, since a new connection can ask the same member twice.
	maxAsked := len(d.config.endpoints) + 1
	if maxAsked == 2 {
		return f(ctx)
	}

	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	answers := make(chan error, maxAsked) // with room for late answers, which nobody receives
	var once sync.Once

	ask := func() {
		began := time.Now()
		v, err := f(ctx)
		if err == nil {
			once.Do(func() { value = v })
		}
		if err == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			d.readLatency.Store(int64(time.Since(began)))
		}
		answers <- err
	}

	delay := minHedgeDelay
	if time.Since(time.Unix(0, d.lastHedge.Load())) < eagerHedgeWindow {
		delay = eagerHedgeDelay
	}
	delay = max(delay, hedgeFactor*time.Duration(d.readLatency.Load()))

	for asked, failed := 0, 0; ; {
		if asked < maxAsked {
			asking.Go(ask)
			asked++
		}

		select {
		case err = <-answers:
			if err == nil && asked > 1 {
				d.lastHedge.Store(time.Now().UnixNano())
			}
			if err == nil {
				return value, nil
			}
			failed++
			if failed == asked {
				return value, err
			}
		case <-time.After(delay << (asked - 1)):
		}
	}
}

const (
	// callTimeout bounds a call with its repetitions, while etcd does not answer.
	callTimeout = 30 * time.Second
	// commitTimeout bounds one request that writes. etcd itself gives up after seven seconds.
	commitTimeout = 10 * time.Second
	// firstAttemptTimeout is how long a read waits for one member before it asks
	// another; the next attempts wait longer, in case it is slow, not stuck.
	firstAttemptTimeout = 2 * time.Second
	maxBackoff          = time.Second // between attempts
)

// retry calls f until it gets an answer. f must be repeatable, since a call without an answer may have been
// carried out. Each call can reach a different member.
func (d *db) retry(ctx context.Context, f func(ctx context.Context) error) error {
	bound, cancel := d.Bound(ctx, callTimeout)
	defer cancel()

	for n := 0; ; n++ {
		attempt, cancel := context.WithTimeout(bound, firstAttemptTimeout<<min(n, 4))
		err := f(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if !isTransient(err) || waitBackoff(bound, n) != nil {
			return d.storeError(ctx, d.connectionError(err))
		}
	}
}

// retryUnknownToken calls f again only if a member does not know the login's token, and so has not carried
// out the call. It is for calls that must not be repeated otherwise.
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

// connectionError replaces an error of etcd's client, which says only that time was up, by
// the reason why no member could be connected to, if there is one.
func (d *db) connectionError(err error) error {
	conn := d.client.ActiveConnection()
	if !isTransient(err) || conn.GetState() != connectivity.TransientFailure {
		return err
	}

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, refused := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte(d.keys.markerKey())},
		grpc.WaitForReady(false))
	if grpcCode(refused) == codes.Unavailable {
		return refused
	}

	return err
}

func waitBackoff(ctx context.Context, failures int) error {
	return backoff.Sleep(ctx, backoff.Delay(failures, 20*time.Millisecond, maxBackoff))
}

// get reads with retries, linearizable unless an option says otherwise.
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

		if !op.IsSerializable() {
			d.observeResponse(before, resp.Header)
		}

		return nil
	})

	return resp, err
}

// waitReady waits until a member is connected. If it fails, nothing was sent.
func (d *db) waitReady(ctx context.Context) error {
	if d.client.ActiveConnection().GetState() == connectivity.Ready {
		return nil
	}
	_, err := d.get(ctx, d.keys.markerKey(), clientv3.WithCountOnly())
	return err
}

// storeError returns the store's error that corresponds to one of etcd's client, or one that explains it in
// plain words. It returns other errors unchanged.
func (d *db) storeError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if closed := d.CheckUsable(context.Background()); closed != nil {
		return closed
	}
	if d.auth.isRefused() && (ctx.Err() != nil || isTransient(err) || errors.Is(err, rpctypes.ErrAuthFailed)) {
		return mapKnownError(rpctypes.ErrAuthFailed)
	}
	if ctx.Err() != nil || isTransient(err) {
		return unreachableError(ctx, d.config, err)
	}

	return mapKnownError(err)
}

// mapKnownError returns the store's own error, or a readable one, for errors of etcd that have a known cause.
func mapKnownError(err error) error {
	for _, m := range []struct{ etcd, store error }{
		{rpctypes.ErrCompacted, store.ErrHistoryLost},
		{rpctypes.ErrLeaseNotFound, store.ErrLeaseLost},
		{rpctypes.ErrTooManyOps, fmt.Errorf("%w: etcd runs with a --max-txn-ops below its default of 128", store.ErrTooLarge)},
		{rpctypes.ErrRequestTooLarge, fmt.Errorf("%w: etcd runs with a --max-request-bytes below its default of 1.5 MiB", store.ErrTooLarge)},
		{rpctypes.ErrNoSpace, fmt.Errorf("etcd's database is full: compact it, defragment it, then disarm its alarm: %w", rpctypes.ErrNoSpace)},
		{rpctypes.ErrPermissionDenied, fmt.Errorf("etcd's user cannot read and write the whole prefix: %w", rpctypes.ErrPermissionDenied)},
		{rpctypes.ErrAuthFailed, fmt.Errorf("etcd refuses the login: wrong user or password: %w", rpctypes.ErrAuthFailed)},
		{rpctypes.ErrUserEmpty, fmt.Errorf("etcd wants a user: give ?user=NAME&password-file=FILE: %w", rpctypes.ErrUserEmpty)},
	} {
		if errors.Is(err, m.etcd) {
			return m.store
		}
	}

	return err
}

// isTransient reports whether the same call may succeed a moment later, or on another member. A commit with
// such an error may have happened.
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

// isUnknownToken reports whether a member did not know the log-in's token, or not yet: each
// learns of it in its turn, and one that is behind does so later. Nothing was done.
func isUnknownToken(err error) bool {
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision)
}

func grpcCode(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	return status.Code(err)
}

// unreachableError returns the error that no member of etcd answers, with the reason.
func unreachableError(ctx context.Context, p config, err error) error {
	text := status.Convert(err).Message() // without gRPC's words around it
	why := fmt.Sprintf("etcd at %s does not answer: %s", p.endpointList(), text)
	if strings.Contains(text, "tls: ") || strings.Contains(text, "x509: ") {
		why = fmt.Sprintf("no connection to etcd at %s for its certificates: %s", p.endpointList(), text)
	}
	if ctx.Err() != nil {
		return store.OverdueError(ctx, why)
	}

	return store.AwayError(why, err)
}
