package etcd

import (
	"context"
	"errors"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
)

// snapshot reads at the revision of its first read.
type snapshot struct {
	d *db

	mu       sync.Mutex
	closed   bool
	revision int64 // 0: not fixed yet
	epoch    int   // of the revision
}

func (d *db) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return nil, err
	}
	return &snapshot{d: d}, nil
}

func (s *snapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	resp, err := s.read(ctx, s.d.keys.encodeKey(key))
	if err != nil || len(resp.Kvs) == 0 {
		return store.KV{}, false, err
	}
	kv := resp.Kvs[0]
	return store.KV{Key: key, Value: kv.Value, Revision: kv.ModRevision}, true, nil
}

func (s *snapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	var kvs []store.KV
	var leased []string
	err := readPages(s.d.keys.prefixRange(prefix), func(begin, end string, limit int64) (*clientv3.GetResponse, error) {
		resp, err := s.read(ctx, begin, clientv3.WithRange(end), clientv3.WithLimit(limit))
		if err != nil {
			return nil, err
		}
		for _, kv := range resp.Kvs {
			kvs = append(kvs, store.KV{Key: s.d.keys.decodeKey(kv.Key), Value: kv.Value, Revision: kv.ModRevision})
			if kv.Lease != 0 {
				leased = append(leased, string(kv.Key))
			}
		}
		return resp, nil
	})
	if err != nil {
		return nil, err
	}
	revision, epoch := s.fixedAt()
	s.d.leasedKeys.put(listingID{prefix, revision, epoch}, leased)
	return kvs, nil
}

func (s *snapshot) Revision(ctx context.Context) (int64, error) {
	if revision, _ := s.fixedAt(); revision == 0 {
		if _, err := s.read(ctx, s.d.keys.markerKey(), clientv3.WithCountOnly()); err != nil {
			return 0, err
		}
	}
	revision, _ := s.fixedAt()
	return revision, s.checkUsable(ctx)
}

func (s *snapshot) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

func (s *snapshot) checkUsable(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	return s.d.CheckUsable(ctx)
}

func (s *snapshot) fixedAt() (revision int64, epoch int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision, s.epoch
}

// fixRevision reports whether the revision is the snapshot's: another first read may have
// been faster.
func (s *snapshot) fixRevision(revision int64, epoch int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision == 0 {
		s.revision, s.epoch = revision, epoch
	}
	return s.revision == revision && s.epoch == epoch
}

func (s *snapshot) read(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if err := s.checkUsable(ctx); err != nil {
		return nil, err
	}
	if revision, _ := s.fixedAt(); revision == 0 {
		resp, epoch, err := s.d.readNewest(ctx, key, opts...)
		if err != nil || s.fixRevision(resp.Header.Revision, epoch) {
			return resp, err
		}
	}
	revision, epoch := s.fixedAt()
	if epoch != s.d.history.lastSeen().epoch {
		return nil, store.ErrHistoryLost
	}
	resp, err := s.d.readAt(ctx, revision, key, opts...)
	if errors.Is(err, rpctypes.ErrFutureRev) { // it was not in the future when it was fixed
		_ = s.d.probeRevision(ctx)
		return nil, store.ErrHistoryLost
	}
	return resp, err
}

// readNewest reads if the store is still the one that was opened, and returns the epoch of
// the answer.
func (d *db) readNewest(ctx context.Context, key string, opts ...clientv3.OpOption) (resp *clientv3.GetResponse, epoch int, err error) {
	var txn *clientv3.TxnResponse
	err = d.retry(ctx, func(ctx context.Context) (err error) {
		before := d.history.lastSeen()
		txn, err = hedgeRead(ctx, d, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			return d.client.Txn(ctx).If(d.markerUnchanged()).Then(clientv3.OpGet(key, opts...)).Commit()
		})
		if err == nil {
			epoch = d.observeResponse(before, txn.Header)
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	if !txn.Succeeded {
		return nil, 0, d.MarkGone()
	}
	resp = (*clientv3.GetResponse)(txn.Responses[0].GetResponseRange())
	resp.Header = txn.Header
	return resp, epoch, nil
}

// readAt reads at a revision. What is there never changes, so that any member may answer
// without asking the others, unless it is not as far yet.
func (d *db) readAt(ctx context.Context, revision int64, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	opts = append(opts, clientv3.WithRev(revision))
	resp, err := d.get(ctx, key, append(opts, clientv3.WithSerializable())...)
	if errors.Is(err, rpctypes.ErrFutureRev) {
		resp, err = d.get(ctx, key, opts...)
	}
	return resp, err
}

const (
	firstPageKeys   = 128     // keys
	targetPageBytes = 4 << 20 // by the size of the page before
	maxPageKeys     = 8 << 10
)

func readPages(s keyRange, read func(begin, end string, limit int64) (*clientv3.GetResponse, error)) error {
	for limit := int64(firstPageKeys); ; {
		resp, err := read(s.begin, s.end, limit)
		if err != nil || !resp.More || len(resp.Kvs) == 0 {
			return err
		}
		size := 1
		for _, kv := range resp.Kvs {
			size += len(kv.Key) + len(kv.Value)
		}
		limit = min(max(int64(targetPageBytes/size)*int64(len(resp.Kvs)), 16), maxPageKeys)
		s.begin = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}
