package etcd

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
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
	revision int64                 // 0 before the first read
	epoch    int                   // the revision's epoch
	fetched  map[string]store.KV   // the keys that Prefetch has read; the Revision of an absent key is 0
	listed   map[string][]store.KV // the lists that Prefetch has read, by prefix
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

// maxPrefetched is how many keys and lists are read in one transaction. etcd's own limit is 128 operations.
const maxPrefetched = 100

// Prefetch reads the keys and lists in one transaction, or in a few. It does not keep lists that are longer than a
// page.
func (s *snapshot) Prefetch(ctx context.Context, next store.Scope) error {
	var reads []prefetch
	for _, key := range next.Keys {
		reads = append(reads, prefetch{name: key})
	}
	for _, prefix := range next.Prefixes {
		reads = append(reads, prefetch{name: prefix, isList: true})
	}

	for some := range slices.Chunk(reads, maxPrefetched) {
		if err := s.prefetchTogether(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// prefetch is a key, or a list by its prefix, to read before its use.
type prefetch struct {
	name   string
	isList bool
}

// op returns the read at the revision, or at the newest one if it is 0.
func (p prefetch) op(d *db, revision int64) clientv3.Op {
	if !p.isList {
		return clientv3.OpGet(d.keys.encodeKey(p.name), clientv3.WithRev(revision))
	}
	span := d.keys.prefixRange(p.name)
	return clientv3.OpGet(span.begin,
		clientv3.WithRange(span.end), clientv3.WithLimit(firstPageKeys), clientv3.WithRev(revision))
}

// prefetchTogether reads several keys and lists in one request, and keeps them for later reads. If it is the snapshot's
// first read, it fixes the revision.
func (s *snapshot) prefetchTogether(ctx context.Context, reads []prefetch) error {
	if err := s.checkUsable(ctx); err != nil {
		return err
	}

	revision, epoch := s.fixedAt()
	ops := make([]clientv3.Op, len(reads))
	for i, read := range reads {
		ops[i] = read.op(s.d, revision)
	}

	txn, now, err := s.d.readTogether(ctx, ops...)
	if errors.Is(err, rpctypes.ErrFutureRev) {
		return s.restart(ctx)
	}
	if err != nil {
		return err
	}

	if revision != 0 && now != epoch {
		return s.restart(ctx)
	}
	// If another read has fixed a different revision, these values are useless.
	if revision == 0 && !s.fixRevision(txn.Header.Revision, now) {
		return nil
	}

	for i, read := range reads {
		s.keep(read, txn.Responses[i].GetResponseRange())
	}
	return nil
}

// keep keeps what was read for Get and List.
func (s *snapshot) keep(read prefetch, response *etcdserverpb.RangeResponse) {
	if read.isList {
		if response.More {
			return
		}
		kvs := s.d.toKVs(response.Kvs)
		s.noteLeased(read.name, leasedOf(response.Kvs))
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.listed == nil {
			s.listed = map[string][]store.KV{}
		}
		s.listed[read.name] = kvs
		return
	}

	kv := store.KV{Key: read.name}
	if kvs := response.Kvs; len(kvs) > 0 {
		kv.Value = kvs[0].Value
		kv.Revision = kvs[0].ModRevision
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fetched == nil {
		s.fetched = map[string]store.KV{}
	}
	s.fetched[read.name] = kv
}

// restart returns ErrHistoryLost, so that the caller starts its reads again. It is called if etcd no longer
// has the snapshot's revision, although it had it when the snapshot fixed it. The probe lets the history
// tracker notice that the history was replaced.
func (s *snapshot) restart(ctx context.Context) error {
	// Without an answer, the tracker notices the replacement at a later request.
	_ = s.d.probeRevision(ctx)
	return store.ErrHistoryLost
}

func (s *snapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	s.mu.Lock()
	kvs, listed := s.listed[prefix]
	s.mu.Unlock()
	if listed {
		return slices.Clone(kvs), s.checkUsable(ctx)
	}

	var leased []string
	err := readPages(s.d.keys.prefixRange(prefix), func(begin, end string, limit int64) (*clientv3.GetResponse, error) {
		resp, err := s.read(ctx, begin, clientv3.WithRange(end), clientv3.WithLimit(limit))
		if err != nil {
			return nil, err
		}

		kvs = append(kvs, s.d.toKVs(resp.Kvs)...)
		leased = append(leased, leasedOf(resp.Kvs)...)
		return resp, nil
	})
	if err != nil {
		return nil, err
	}

	s.noteLeased(prefix, leased)
	return kvs, nil
}

func (d *db) toKVs(found []*mvccpb.KeyValue) (kvs []store.KV) {
	for _, kv := range found {
		kvs = append(kvs, store.KV{Key: d.keys.decodeKey(kv.Key), Value: kv.Value, Revision: kv.ModRevision})
	}
	return kvs
}

// leasedOf returns the keys, as etcd has them, that have a lease.
func leasedOf(found []*mvccpb.KeyValue) (keys []string) {
	for _, kv := range found {
		if kv.Lease != 0 {
			keys = append(keys, string(kv.Key))
		}
	}
	return keys
}

// noteLeased notes which keys of a list at the snapshot's revision have a lease.
func (s *snapshot) noteLeased(prefix string, keys []string) {
	revision, epoch := s.fixedAt()
	s.d.leasedKeys.put(listingID{
		span:     handle.Span{Text: prefix, Prefix: true},
		revision: revision,
		epoch:    epoch,
	}, keys)
}

// Revision returns the revision that the snapshot reads at, and fixes it if nothing was read yet.
func (s *snapshot) Revision(ctx context.Context) (int64, error) {
	if revision, _ := s.fixedAt(); revision == 0 {
		// Only a read fixes the revision. Any key would do.
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

// fixedAt returns the revision and epoch that the first read has fixed, or zeros before that.
func (s *snapshot) fixedAt() (revision int64, epoch int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision, s.epoch
}

// fixRevision fixes the snapshot's revision, unless it is already fixed. It returns false if another read has
// fixed a different revision.
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

// readTogether reads in one transaction, and returns the epoch of the answer. It returns ErrStoreGone if the
// store is no longer the one that was opened.
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

// readAt reads at a revision. The content of a revision never changes, so any member that has the revision
// can answer without the other members.
func (d *db) readAt(
	ctx context.Context,
	revision int64,
	key string,
	opts ...clientv3.OpOption,
) (*clientv3.GetResponse, error) {
	opts = append(opts, clientv3.WithRev(revision))
	resp, err := d.get(ctx, key, append(opts, clientv3.WithSerializable())...)
	if errors.Is(err, rpctypes.ErrFutureRev) {
		// The member is behind the others. Without WithSerializable, it first catches up with them.
		resp, err = d.get(ctx, key, opts...)
	}

	return resp, err
}

const (
	firstPageKeys   = 128     // keys
	targetPageBytes = 4 << 20 // estimated from the previous page
	maxPageKeys     = 8 << 10 // keys
)

// readPages calls read for the range, page by page. It chooses limits for pages of about targetPageBytes.
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
