package etcd

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/backoff"
)

const (
	// sweepInterval is how long a tombstone stays at least. A prefix condition older
	// than a sweep does not hold, and its caller reads again.
	sweepInterval = 10 * time.Minute
	// maxUnsweptTombstones are not worth a sweep.
	maxUnsweptTombstones = 1000
)

// sweeper deletes old tombstones. Each process that lives long enough does so; that
// several do the same work does no harm.
type sweeper struct {
	d            *db
	lastRevision int64 // of the round before
	lastEpoch    int
}

func (s *sweeper) run() {
	for backoff.Sleep(s.d.Context(), sweepInterval+rand.N(sweepInterval/4)) == nil {
		// Etcd may be away, or the store gone: whoever uses it hears of it there.
		_ = s.sweepOld(s.d.Context(), maxUnsweptTombstones)
	}
}

func (s *sweeper) sweepOld(ctx context.Context, above int64) error {
	tombstones := s.d.keys.tombstoneRange("")
	resp, err := s.d.get(ctx, tombstones.begin, clientv3.WithRange(tombstones.end), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	before, epoch := s.lastRevision, s.lastEpoch
	s.lastRevision, s.lastEpoch = resp.Header.Revision, s.d.history.lastSeen().epoch
	if before == 0 || epoch != s.lastEpoch || resp.Count <= above {
		return nil
	}
	return s.sweepUpTo(ctx, before)
}

// sweepUpTo first writes that tombstones may be missing: a condition that would need them
// does not hold from then on.
func (s *sweeper) sweepUpTo(ctx context.Context, upto int64) error {
	d := s.d
	later := clientv3.Compare(clientv3.Value(d.keys.sweptKey()), "<", sweptValue(upto))
	_, err := d.client.Txn(ctx).If(d.markerUnchanged(), later).
		Then(clientv3.OpPut(d.keys.sweptKey(), sweptValue(upto))).Commit()
	if err != nil {
		return d.storeError(ctx, err)
	}
	tombstones := d.keys.tombstoneRange("")
	return readPages(tombstones, func(begin, end string, limit int64) (*clientv3.GetResponse, error) {
		resp, err := d.get(ctx, begin, clientv3.WithRange(end), clientv3.WithLimit(limit), clientv3.WithKeysOnly())
		if err != nil {
			return nil, err
		}
		return resp, s.deleteTombstones(ctx, resp, upto)
	})
}

// deleteTombstones spares those that were written again meanwhile.
func (s *sweeper) deleteTombstones(ctx context.Context, resp *clientv3.GetResponse, upto int64) error {
	for kvs := range slices.Chunk(resp.Kvs, maxRootOps) {
		var ops []clientv3.Op
		for _, kv := range kvs {
			old := clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "<", upto+1)
			ops = append(ops, clientv3.OpTxn([]clientv3.Cmp{old}, []clientv3.Op{clientv3.OpDelete(string(kv.Key))}, nil))
		}
		if _, err := s.d.client.Txn(ctx).If(s.d.markerUnchanged()).Then(ops...).Commit(); err != nil {
			return s.d.storeError(ctx, err)
		}
	}
	return nil
}
