package etcd

import (
	"context"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
)

const (
	// patience is how long a call waits for an etcd that does not answer.
	patience = 30 * time.Second
	// commitPatience bounds one request that writes. etcd itself gives up after
	// seven seconds.
	commitPatience = 10 * time.Second
	// firstAttempt is how long a read waits for one member before it asks
	// another; the next attempts wait longer, in case it is slow, not stuck.
	firstAttempt = 2 * time.Second
	// longestPause is between attempts.
	longestPause = time.Second
)

// bind is a context that ends with the opener, too.
func (d *db) bind(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(d.Context(), cancel)
	return ctx, func() { stop(); cancel() }
}

// retry calls f, which must be repeatable, until it gets an answer: each time
// another member may be asked.
func (d *db) retry(ctx context.Context, f func(ctx context.Context) error) error {
	bound, cancel := d.bind(ctx, patience)
	defer cancel()
	for n := 0; ; n++ {
		attempt, cancel := context.WithTimeout(bound, firstAttempt<<min(n, 4))
		err := f(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if !transient(err) || pause(bound, n) != nil {
			return d.explain(ctx, d.cause(err))
		}
	}
}

// known calls f, which must not be repeated once it was heard, until a member knows
// who calls.
func (d *db) known(ctx context.Context, f func() error) error {
	bound, cancel := d.bind(ctx, patience)
	defer cancel()
	for n := 0; ; n++ {
		err := f()
		if !unknownToken(err) || pause(bound, n) != nil {
			return err
		}
	}
}

// cause is why no member could be connected to, if that is it: what etcd's client
// says is only that time was up.
func (d *db) cause(err error) error {
	conn := d.client.ActiveConnection()
	if !transient(err) || conn.GetState() != connectivity.TransientFailure {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, refused := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte(d.space.marker())}, grpc.WaitForReady(false))
	if codeOf(refused) == codes.Unavailable {
		return refused
	}
	return err
}

// pause waits after the n-th failure: longer each time, and at random, so that
// those who lost etcd together do not return together.
func pause(ctx context.Context, n int) error {
	longest := min(20*time.Millisecond<<min(n, 10), longestPause)
	timer := time.NewTimer(longest/2 + rand.N(longest/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// get is a read that retries, linearizable unless an option says otherwise.
func (d *db) get(ctx context.Context, key string, opts ...clientv3.OpOption) (resp *clientv3.GetResponse, err error) {
	op := clientv3.OpGet(key, opts...)
	err = d.retry(ctx, func(ctx context.Context) error {
		before := d.history.lastSeen()
		resp, err = hedge(ctx, d, func(ctx context.Context) (*clientv3.GetResponse, error) {
			return d.client.Get(ctx, key, opts...)
		})
		if err == nil && !op.IsSerializable() {
			d.hearAnswer(before, resp.Header)
		}
		return err
	})
	return resp, err
}

// ready waits until a member is connected. What fails before has sent nothing.
func (d *db) ready(ctx context.Context) error {
	if d.client.ActiveConnection().GetState() == connectivity.Ready {
		return nil
	}
	_, err := d.get(ctx, d.space.marker(), clientv3.WithCountOnly())
	return err
}
