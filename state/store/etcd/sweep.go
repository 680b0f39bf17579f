package etcd

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// sweepEvery is how long a mark stays at least. A prefix condition older
	// than a sweep does not hold, and its caller reads again.
	sweepEvery = 10 * time.Minute
	// sweepAbove is how many marks are left alone.
	sweepAbove = 1000
)

// sweeper removes old marks. Each opener has one that lives long enough; that
// several do the same work does no harm.
type sweeper struct {
	d     *db
	seen  int64 // the revision of the look before
	epoch int   // of that
}

func (s *sweeper) start(d *db) {
	s.d = d
	d.Go(s.run)
}

func (s *sweeper) run() {
	wait := time.NewTimer(sweepEvery + rand.N(sweepEvery/4))
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-s.d.Context().Done():
			return
		}
		// Etcd may be away, or the store gone: whoever uses it hears of it there.
		_ = s.look(s.d.Context(), sweepAbove)
		wait.Reset(sweepEvery + rand.N(sweepEvery/4))
	}
}

// look sweeps what was there at the look before already, if it is above a
// number of marks.
func (s *sweeper) look(ctx context.Context, above int64) error {
	marks := s.d.space.marksBelow("")
	resp, err := s.d.get(ctx, marks.begin, clientv3.WithRange(marks.end), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	before, epoch := s.seen, s.epoch
	s.seen, s.epoch = resp.Header.Revision, s.d.history.lastSeen().epoch
	if before == 0 || epoch != s.epoch || resp.Count <= above {
		return nil
	}
	return s.sweep(ctx, before)
}

// sweep removes the marks up to the revision. That they may be missing is
// written first: a condition that would need them does not hold from then on.
func (s *sweeper) sweep(ctx context.Context, upto int64) error {
	d := s.d
	later := clientv3.Compare(clientv3.Value(d.space.swept()), "<", sweptValue(upto))
	_, err := d.client.Txn(ctx).If(d.isSame(), later).
		Then(clientv3.OpPut(d.space.swept(), sweptValue(upto))).Commit()
	if err != nil {
		return d.explain(ctx, err)
	}
	marks := d.space.marksBelow("")
	return pages(marks, func(begin, end string, limit int64) (*clientv3.GetResponse, error) {
		resp, err := d.get(ctx, begin, clientv3.WithRange(end), clientv3.WithLimit(limit), clientv3.WithKeysOnly())
		if err != nil {
			return nil, err
		}
		return resp, s.remove(ctx, resp, upto)
	})
}

// remove deletes those of the marks that were not made again meanwhile.
func (s *sweeper) remove(ctx context.Context, resp *clientv3.GetResponse, upto int64) error {
	for kvs := range slices.Chunk(resp.Kvs, maxRoot) {
		var ops []clientv3.Op
		for _, kv := range kvs {
			old := clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "<", upto+1)
			ops = append(ops, clientv3.OpTxn([]clientv3.Cmp{old}, []clientv3.Op{clientv3.OpDelete(string(kv.Key))}, nil))
		}
		if _, err := s.d.client.Txn(ctx).If(s.d.isSame()).Then(ops...).Commit(); err != nil {
			return s.d.explain(ctx, err)
		}
	}
	return nil
}
