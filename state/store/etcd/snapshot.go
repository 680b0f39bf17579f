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

// snapshot is a [store.Snapshot]. Its first read fixes the revision, and later reads use the same revision.
type snapshot struct {
	d *db

	mu       sync.Mutex
	closed   bool
	revision int64                 // 0 before the first read
	epoch    int                   // the revision's epoch
	fetched  map[string]store.KV   // the keys that Prefetch has read; the Revision of an absent key is 0
	listed   map[string][]store.KV // the lists that Prefetch has read, by prefix
}

// Snapshot returns a snapshot, and reads nothing yet.
func (d *db) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return nil, err
	}
	return &snapshot{d: d}, nil
}

// Get reads one key, unless Prefetch has kept it.
func (s *snapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	s.mu.Lock()
	kv, fetched := s.fetched[key]
	s.mu.Unlock()
	if fetched {
		// The Revision of an absent key is 0.
		return kv, kv.Revision != 0, s.checkUsable(ctx)
	}

	resp, err := s.read(ctx, s.d.keys.encodeKey(key))
	if err != nil {
		return store.KV{}, false, err
	}
	if len(resp.Kvs) == 0 {
		return store.KV{}, false, nil
	}

	found := resp.Kvs[0]
	return store.KV{Key: key, Value: found.Value, Revision: found.ModRevision}, true, nil
}

// maxPrefetched is how many keys and lists are read in one transaction. etcd's own limit is 128 operations.
const maxPrefetched = 100

// Prefetch reads the keys and lists in as few transactions as possible, and keeps them for Get and List. It
// does not keep lists that are longer than firstPageKeys, so List reads such lists again.
func (s *snapshot) Prefetch(ctx context.Context, next store.Scope) error {
	var reads []prefetch
	for _, key := range next.Keys {
		reads = append(reads, prefetch{name: key})
	}
	for _, prefix := range next.Prefixes {
		reads = append(reads, prefetch{name: prefix, isList: true})
	}

	for chunk := range slices.Chunk(reads, maxPrefetched) {
		if err := s.prefetchTogether(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

// prefetch is one read of Prefetch.
type prefetch struct {
	name   string // the key, or the prefix of the list
	isList bool
}

// op returns the read at the revision, or at the newest revision if revision is 0. It reads at most
// firstPageKeys keys of a list.
func (p prefetch) op(d *db, revision int64) clientv3.Op {
	if !p.isList {
		return clientv3.OpGet(d.keys.encodeKey(p.name), clientv3.WithRev(revision))
	}
	keys := d.keys.prefixRange(p.name)
	return clientv3.OpGet(keys.begin,
		clientv3.WithRange(keys.end), clientv3.WithLimit(firstPageKeys), clientv3.WithRev(revision))
}

// prefetchTogether does the reads in one request, and keeps their results for Get and List. If they are the
// snapshot's first reads, they fix its revision. It keeps no results if a concurrent read has fixed a different
// revision. It returns ErrHistoryLost if etcd's history was replaced.
func (s *snapshot) prefetchTogether(ctx context.Context, reads []prefetch) error {
	if err := s.checkUsable(ctx); err != nil {
		return err
	}

	revision, epoch := s.fixedAt()
	ops := make([]clientv3.Op, len(reads))
	for i, read := range reads {
		ops[i] = read.op(s.d, revision)
	}

	txn, answerEpoch, err := s.d.readTogether(ctx, ops...)
	// etcd no longer has a revision that it had before, so its history was replaced.
	if errors.Is(err, rpctypes.ErrFutureRev) {
		return s.historyLost(ctx)
	}
	if err != nil {
		return err
	}

	// The snapshot's revision belongs to an earlier history than the answer.
	if revision != 0 && answerEpoch != epoch {
		return s.historyLost(ctx)
	}
	// If a concurrent read has fixed a different revision, these values are useless.
	if revision == 0 && !s.fixRevision(txn.Header.Revision, answerEpoch) {
		return nil
	}

	for i, read := range reads {
		s.keepPrefetched(read, txn.Responses[i].GetResponseRange())
	}
	return nil
}

// keepPrefetched stores the result of a prefetch for Get or List. It drops a list that is longer than one page.
func (s *snapshot) keepPrefetched(read prefetch, response *etcdserverpb.RangeResponse) {
	if read.isList {
		// List reads such a list again, page by page.
		if response.More {
			return
		}

		kvs := s.d.toKVs(response.Kvs)
		s.cacheLeased(read.name, keysWithLease(response.Kvs))
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

// historyLost returns ErrHistoryLost, so that the caller takes a new snapshot. It is called if etcd's history was
// replaced after the snapshot fixed its revision.
func (s *snapshot) historyLost(ctx context.Context) error {
	// The answer shows the history tracker that the history was replaced. If there is no answer, the tracker
	// notices this at a later request.
	_ = s.d.probeRevision(ctx)
	return store.ErrHistoryLost
}

// List returns the keys with the prefix. It reads them page by page, unless Prefetch has kept the list.
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
		leased = append(leased, keysWithLease(resp.Kvs)...)
		return resp, nil
	})
	if err != nil {
		return nil, err
	}

	s.cacheLeased(prefix, leased)
	return kvs, nil
}

// toKVs converts the keys of an answer to keys of the store.
func (d *db) toKVs(found []*mvccpb.KeyValue) (kvs []store.KV) {
	for _, kv := range found {
		kvs = append(kvs, store.KV{Key: d.keys.decodeKey(kv.Key), Value: kv.Value, Revision: kv.ModRevision})
	}
	return kvs
}

// keysWithLease returns those of the keys that have a lease, as etcd's keys.
func keysWithLease(found []*mvccpb.KeyValue) (keys []string) {
	for _, kv := range found {
		if kv.Lease != 0 {
			keys = append(keys, string(kv.Key))
		}
	}
	return keys
}

// cacheLeased adds the leased keys of a list to the cache. Transactions with a condition on the prefix need
// them.
func (s *snapshot) cacheLeased(prefix string, keys []string) {
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

// Close makes all later reads fail. It is idempotent.
func (s *snapshot) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// checkUsable returns an error if the snapshot is closed, if the store cannot be used, or if ctx is done.
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

// fixRevision fixes the snapshot's revision and epoch, unless they are already fixed. It returns false if
// another read has fixed a different revision or epoch.
func (s *snapshot) fixRevision(revision int64, epoch int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision == 0 {
		s.revision = revision
		s.epoch = epoch
	}
	return s.revision == revision && s.epoch == epoch
}

// read reads at the snapshot's revision. The first read fixes that revision. A later read returns ErrHistoryLost
// if this process has noticed that etcd's history was replaced, or if etcd does not have the revision.
func (s *snapshot) read(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if err := s.checkUsable(ctx); err != nil {
		return nil, err
	}

	if revision, _ := s.fixedAt(); revision == 0 {
		// Unlike a simple read, this also checks that the store is still the one that was opened.
		txn, epoch, err := s.d.readTogether(ctx, clientv3.OpGet(key, opts...))
		if err != nil {
			return nil, err
		}
		if s.fixRevision(txn.Header.Revision, epoch) {
			resp := (*clientv3.GetResponse)(txn.Responses[0].GetResponseRange())
			resp.Header = txn.Header
			return resp, nil
		}
		// A concurrent read has fixed a different revision: read again, at that revision.
	}

	revision, epoch := s.fixedAt()
	if epoch != s.d.history.lastSeen().epoch {
		return nil, store.ErrHistoryLost
	}
	resp, err := s.d.readAt(ctx, revision, key, opts...)
	if errors.Is(err, rpctypes.ErrFutureRev) {
		return nil, s.historyLost(ctx)
	}

	return resp, err
}

// readTogether does the reads in one transaction, and returns the answer with its epoch. It returns
// ErrStoreGone if the store is no longer the one that was opened.
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

// readAt reads at a revision. It uses a serializable read if possible: the content of a revision never
// changes, so any member that has the revision can answer without the other members.
func (d *db) readAt(
	ctx context.Context,
	revision int64,
	key string,
	opts ...clientv3.OpOption,
) (*clientv3.GetResponse, error) {
	opts = append(opts, clientv3.WithRev(revision))
	resp, err := d.get(ctx, key, append(opts, clientv3.WithSerializable())...)
	if errors.Is(err, rpctypes.ErrFutureRev) {
		// The member is behind the other members. Without WithSerializable, it first catches up with them.
		resp, err = d.get(ctx, key, opts...)
	}

	return resp, err
}

const (
	firstPageKeys   = 128     // how many keys the first page has
	minPageKeys     = 16      // how few keys a later page has at least
	maxPageKeys     = 8 << 10 // how many keys a page has at most
	targetPageBytes = 4 << 20 // the size that readPages aims for
)

// readPages calls read for one part of the range after another, until read returns an error or the range is
// read. read must read at most limit keys from begin to end, without end itself. The first limit is firstPageKeys.
// readPages chooses each later limit so that the page has about targetPageBytes, judged by the sizes in the
// previous page.
func readPages(keys keyRange, read func(begin, end string, limit int64) (*clientv3.GetResponse, error)) error {
	begin := keys.begin
	for limit := int64(firstPageKeys); ; {
		resp, err := read(begin, keys.end, limit)
		if err != nil {
			return err
		}
		if !resp.More || len(resp.Kvs) == 0 {
			return nil // this was the last page
		}

		pageBytes := 1 // not 0, since it is a divisor
		for _, kv := range resp.Kvs {
			pageBytes += len(kv.Key) + len(kv.Value)
		}
		// This many pages like the present one fit into targetPageBytes.
		pagesPerTarget := int64(targetPageBytes / pageBytes)
		limit = min(max(pagesPerTarget*int64(len(resp.Kvs)), minPageKeys), maxPageKeys)

		// The next page begins with the smallest key after the last one of this page.
		lastKey := string(resp.Kvs[len(resp.Kvs)-1].Key)
		begin = lastKey + "\x00"
	}
}
