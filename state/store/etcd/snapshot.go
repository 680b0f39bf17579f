package etcd

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
	"bijou/state/store/handle"
)

// snapshot reads at the revision of its first read.
type snapshot struct {
	d *db

	mu       sync.Mutex
	closed   bool
	revision int64               // 0: not fixed yet
	epoch    int                 // of the revision
	fetched  map[string]store.KV // by Prefetch; Revision 0: the key is absent
}

func (d *db) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return nil, err
	}
	return &snapshot{d: d}, nil
}

func (s *snapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	s.mu.Lock()
	kv, fetched := s.fetched[key]
	s.mu.Unlock()
	if fetched {
		return kv, kv.Revision != 0, s.checkUsable(ctx)
	}

	resp, err := s.read(ctx, s.d.keys.encodeKey(key))
	if err != nil || len(resp.Kvs) == 0 {
		return store.KV{}, false, err
	}

	found := resp.Kvs[0]
	return store.KV{Key: key, Value: found.Value, Revision: found.ModRevision}, true, nil
}

// maxPrefetched keys are read in one transaction: etcd's own limit is 128 operations.
const maxPrefetched = 100

// Prefetch reads the keys in one transaction, or in a few.
func (s *snapshot) Prefetch(ctx context.Context, keys ...string) error {
	for some := range slices.Chunk(keys, maxPrefetched) {
		if err := s.prefetchTogether(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// prefetchTogether reads several keys in one request, so that later reads of them need none. The first read
// of a snapshot fixes its revision.
func (s *snapshot) prefetchTogether(ctx context.Context, keys []string) error {
	if err := s.checkUsable(ctx); err != nil {
		return err
	}

	revision, epoch := s.fixedAt()
	ops := make([]clientv3.Op, len(keys))
	for i, key := range keys {
		ops[i] = clientv3.OpGet(s.d.keys.encodeKey(key), clientv3.WithRev(revision)) // 0 is the newest
	}

	txn, now, err := s.d.readTogether(ctx, ops...)
	switch {
	case errors.Is(err, rpctypes.ErrFutureRev) || err == nil && revision != 0 && now != epoch:
		return s.restart(ctx)
	case err != nil:
		return err
	case revision == 0 && !s.fixRevision(txn.Header.Revision, now):
		return nil // another read was first
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fetched == nil {
		s.fetched = map[string]store.KV{}
	}

	for i, key := range keys {
		kv := store.KV{Key: key}
		if kvs := txn.Responses[i].GetResponseRange().Kvs; len(kvs) > 0 {
			kv.Value = kvs[0].Value
			kv.Revision = kvs[0].ModRevision
		}
		s.fetched[key] = kv
	}

	return nil
}

// restart learns the store's revision, and returns ErrHistoryLost, so that the caller begins its reads again.
// etcd no longer has the snapshot's revision, although it had it when the snapshot fixed it.
func (s *snapshot) restart(ctx context.Context) error {
	_ = s.d.probeRevision(ctx)
	return store.ErrHistoryLost
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
			kvs = append(kvs, store.KV{
				Key:      s.d.keys.decodeKey(kv.Key),
				Value:    kv.Value,
				Revision: kv.ModRevision,
			})

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
	s.d.leasedKeys.put(listingID{
		span:     handle.Span{Text: prefix, Prefix: true},
		revision: revision,
		epoch:    epoch,
	}, leased)
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
		s.revision = revision
		s.epoch = epoch
	}
	return s.revision == revision && s.epoch == epoch
}

// read reads at the snapshot's revision. The first read fixes that revision.
func (s *snapshot) read(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if err := s.checkUsable(ctx); err != nil {
		return nil, err
	}

	if revision, _ := s.fixedAt(); revision == 0 {
		txn, epoch, err := s.d.readTogether(ctx, clientv3.OpGet(key, opts...))
		if err != nil {
			return nil, err
		}
		if s.fixRevision(txn.Header.Revision, epoch) {
			resp := (*clientv3.GetResponse)(txn.Responses[0].GetResponseRange())
			resp.Header = txn.Header
			return resp, nil
		}
	}

	revision, epoch := s.fixedAt()
	if epoch != s.d.history.lastSeen().epoch {
		return nil, store.ErrHistoryLost
	}
	resp, err := s.d.readAt(ctx, revision, key, opts...)
	if errors.Is(err, rpctypes.ErrFutureRev) {
		return nil, s.restart(ctx)
	}

	return resp, err
}

// readTogether reads in one transaction, if the store is still the one that was opened, and
// returns the epoch of the answer.
func (d *db) readTogether(ctx context.Context, ops ...clientv3.Op) (txn *clientv3.TxnResponse, epoch int, err error) {
	err = d.retry(ctx, func(ctx context.Context) (err error) {
		before := d.history.lastSeen()
		txn, err = hedgeRead(ctx, d, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			return d.client.Txn(ctx).If(d.markerUnchanged()).Then(ops...).Commit()
		})
		if err != nil {
			return err
		}

		epoch = d.observeResponse(before, txn.Header)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if !txn.Succeeded {
		return nil, 0, d.MarkGone()
	}

	return txn, epoch, nil
}

// readAt reads at a revision. The content of a revision never changes, so that any member may answer
// without asking the others, unless it has not come as far yet.
func (d *db) readAt(
	ctx context.Context,
	revision int64,
	key string,
	opts ...clientv3.OpOption,
) (*clientv3.GetResponse, error) {
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

// readPages reads the range page by page, and aims at pages of targetPageBytes.
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
