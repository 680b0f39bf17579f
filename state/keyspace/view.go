package keyspace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"bijou/state/metrics"
	"bijou/state/store"
)

// View reads the keys as they were at one revision. Only one goroutine can use it. Its methods panic after
// the function that received it has returned.
type View struct {
	ctx    context.Context
	snap   store.Snapshot
	buffer *txBuffer // the reads and pending writes of an Update; nil in a View
	space  *Space
	damage map[string]error // errors of the records that lists have skipped, by key
	closed bool
}

// maxViewAttempts limits how often a View begins. If etcd drops its history between two reads in each
// attempt, the keys cannot be read at one revision.
const maxViewAttempts = 10

// View calls f with a View whose reads are all at one revision, the newest at the time of f's first read. It
// returns f's error. f must not write to the store, since a snapshot is open while f runs. After a read has
// failed, all later reads fail immediately. If the store no longer has the revision, View runs f again from
// the start. So a rerun of f must overwrite the results of the first run.
func (s *Space) View(ctx context.Context, f func(v *View) error) error {
	var err error
	for range maxViewAttempts {
		err = s.viewOnce(ctx, f)
		if !errors.Is(err, store.ErrHistoryLost) {
			break
		}
	}
	return err
}

// viewOnce calls f with one snapshot of the store, and measures the time.
func (s *Space) viewOnce(ctx context.Context, f func(v *View) error) (err error) {
	begun := time.Now()
	defer func() {
		s.Metrics.Observe(time.Since(begun), "bijou_store_view_seconds", "result", metrics.Result(err == nil))
	}()
	snap, err := s.store.Snapshot(ctx)
	if err != nil {
		return err
	}

	v := &View{ctx: ctx, snap: &failingSnapshot{Snapshot: snap}, space: s}
	defer v.close()
	defer s.reportSkipped(v)

	return f(v)
}

// failingSnapshot returns its first error from all later reads. So a caller of several reads needs to check
// only the error of the last read, and waits only once for a store that cannot be reached.
type failingSnapshot struct {
	store.Snapshot
	err error
}

// Get reads a key, unless an earlier read has failed.
func (s *failingSnapshot) Get(ctx context.Context, key string) (kv store.KV, ok bool, err error) {
	if s.err == nil {
		kv, ok, s.err = s.Snapshot.Get(ctx, key)
	}
	return kv, ok, s.err
}

// List reads the keys with the prefix, unless an earlier read has failed.
func (s *failingSnapshot) List(ctx context.Context, prefix string) (kvs []store.KV, err error) {
	if s.err == nil {
		kvs, s.err = s.Snapshot.List(ctx, prefix)
	}
	return kvs, s.err
}

// Prefetch does what the snapshot's Prefetch does, unless an earlier read has failed.
func (s *failingSnapshot) Prefetch(ctx context.Context, next store.Scope) error {
	if s.err == nil {
		s.err = s.Snapshot.Prefetch(ctx, next)
	}
	return s.err
}

// Revision returns the snapshot's revision, unless an earlier read has failed.
func (s *failingSnapshot) Revision(ctx context.Context) (revision int64, err error) {
	if s.err == nil {
		revision, s.err = s.Snapshot.Revision(ctx)
	}
	return revision, s.err
}

// Read calls f in a new View, and returns its result.
func Read[T any](ctx context.Context, s *Space, f func(v *View) (T, error)) (result T, err error) {
	err = s.View(ctx, func(v *View) (err error) {
		result, err = f(v)
		return err
	})
	return result, err
}

// Revision returns the revision of all reads. A watch after this revision misses no change.
func (v *View) Revision() (int64, error) {
	v.checkOpen()
	return v.snap.Revision(v.ctx)
}

// close closes the snapshot. It is idempotent.
func (v *View) close() {
	if !v.closed {
		v.closed = true
		v.snap.Close()
	}
}

// checkOpen panics if the View is closed.
func (v *View) checkOpen() {
	if v.closed {
		panic("internal error: a View or Tx was used after the end of its call")
	}
}

// Get reads a key. It returns ok false if the key is absent. In an Update it also sees the transaction's own
// writes, and the commit becomes conditional on the key.
func (v *View) Get(key string) (value []byte, ok bool, err error) {
	v.checkOpen()
	// Only the views of an Update have a buffer.
	if v.buffer == nil {
		kv, ok, err := v.snap.Get(v.ctx, key)
		return kv.Value, ok, err
	}
	if op, written := v.buffer.writes[key]; written {
		return op.Value, !op.Delete, nil
	}

	kv, err := v.buffer.get(v, key)
	return kv.Value, kv.Revision != 0, err
}

// Prefetch names the keys and lists that are read next, so that a distant store sends them in one round trip. It adds
// no condition to the commit.
func (v *View) Prefetch(next Scope) error {
	v.checkOpen()
	// An Update does not read keys that are in memory.
	if v.buffer != nil {
		next.Keys = slices.DeleteFunc(slices.Clone(next.Keys), func(key string) bool {
			_, ok := v.buffer.memory.recall(key)
			return ok
		})
		if len(next.Keys) == 0 && len(next.Prefixes) == 0 {
			return nil
		}
	}

	return v.snap.Prefetch(v.ctx, next)
}

// Keep stores the value of a key in memory, so that the next Update that reads the key needs no round trip
// for it. If the key has changed meanwhile, the Update reads the key again, as after any other conflict. Keep
// stores nothing for an absent key.
func (v *View) Keep(key string) error {
	v.checkOpen()
	kv, ok, err := v.snap.Get(v.ctx, key)
	if err == nil && ok {
		v.space.keep(v.space.memory.Load(), kv)
	}
	return err
}

// Stored does what Get does, but returns the value in the store even if the transaction has written the key.
func (tx *Tx) Stored(key string) (value []byte, ok bool, err error) {
	tx.checkOpen()
	kv, err := tx.buffer.get(tx.View, key)
	return kv.Value, kv.Revision != 0, err
}

// List reads all keys with the prefix in order. In an Update the result includes the transaction's own
// writes, and the commit fails if a key with the prefix was changed, added or removed in the meantime.
func (v *View) List(prefix string) ([]store.KV, error) {
	v.checkOpen()
	if v.buffer == nil {
		return v.snap.List(v.ctx, prefix)
	}
	kvs, err := v.buffer.list(v, prefix)
	return v.buffer.overlayWrites(kvs, prefix), err
}

// ListUnguarded does what List does, but adds no condition to the commit. So the result may be outdated by
// the time of the commit.
func (v *View) ListUnguarded(prefix string) ([]store.KV, error) {
	v.checkOpen()
	kvs, err := v.snap.List(v.ctx, prefix)
	if err != nil {
		return kvs, err
	}
	if v.buffer == nil {
		return kvs, nil // outside of an Update there are no writes
	}
	return v.buffer.overlayWrites(kvs, prefix), nil
}

// HasUnguarded reports whether the key exists. In an Update it also sees the transaction's own writes. It adds no
// condition to the commit.
func (v *View) HasUnguarded(key string) (exists bool, err error) {
	v.checkOpen()
	if v.buffer != nil {
		if op, written := v.buffer.writes[key]; written {
			return !op.Delete, nil
		}
	}

	_, exists, err = v.snap.Get(v.ctx, key)
	return exists, err
}

// GetKV reads a key from the store, with the revision of its last write, which is 0 if the key is absent. It
// adds no condition to the commit, and does not see the transaction's own writes.
func (v *View) GetKV(key string) (store.KV, error) {
	v.checkOpen()
	kv, ok, err := v.snap.Get(v.ctx, key)
	if err != nil {
		return store.KV{Key: key}, err
	}
	if !ok {
		return store.KV{Key: key}, nil
	}
	return kv, nil
}

// prefixed is the part of a store below a prefix. Its users see the keys without the prefix.
type prefixed struct {
	store.Store
	prefix string
}

// Snapshot returns a snapshot of the keys below the prefix.
func (p *prefixed) Snapshot(ctx context.Context) (store.Snapshot, error) {
	s, err := p.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &prefixedSnapshot{Snapshot: s, prefix: p.prefix}, nil
}

// Commit commits the transaction with the prefix before all of its keys and prefixes.
func (p *prefixed) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	// The caller may use its slices again.
	full := store.Txn{Conds: slices.Clone(txn.Conds), Ops: slices.Clone(txn.Ops)}
	for i := range full.Conds {
		c := &full.Conds[i]
		if c.Key != "" {
			c.Key = p.prefix + c.Key
		} else {
			c.Prefix = p.prefix + c.Prefix
		}
	}

	for i := range full.Ops {
		full.Ops[i].Key = p.prefix + full.Ops[i].Key
	}
	return p.Store.Commit(ctx, full)
}

// Watch watches the scope with the prefix before its keys and prefixes.
func (p *prefixed) Watch(ctx context.Context, after int64, scope store.Scope) (store.Watcher, error) {
	w, err := p.Store.Watch(ctx, after, prependToScope(p.prefix, scope))
	if err != nil {
		return nil, err
	}
	return &prefixedWatcher{Watcher: w, prefix: p.prefix}, nil
}

// prependToScope returns the scope with the prefix before all of its keys and prefixes.
func prependToScope(prefix string, s store.Scope) store.Scope {
	return store.Scope{Keys: prependAll(prefix, s.Keys), Prefixes: prependAll(prefix, s.Prefixes)}
}

// prependAll returns the keys with the prefix before each of them.
func prependAll(prefix string, keys []string) []string {
	full := make([]string, len(keys))
	for i := range keys {
		full[i] = prefix + keys[i]
	}
	return full
}

// prefixedSnapshot is a snapshot of the keys below a prefix. Its users see the keys without the prefix.
type prefixedSnapshot struct {
	store.Snapshot
	prefix string
}

// Get reads the key with the prefix before it, and removes the prefix from the key that was found.
func (s *prefixedSnapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	kv, ok, err := s.Snapshot.Get(ctx, s.prefix+key)
	kv.Key = strings.TrimPrefix(kv.Key, s.prefix)
	return kv, ok, err
}

// Prefetch reads the keys and lists with the prefix before their names.
func (s *prefixedSnapshot) Prefetch(ctx context.Context, next store.Scope) error {
	return s.Snapshot.Prefetch(ctx, prependToScope(s.prefix, next))
}

// List reads the keys that begin with s.prefix and then prefix, and removes s.prefix from them.
func (s *prefixedSnapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	kvs, err := s.Snapshot.List(ctx, s.prefix+prefix)
	// The store may use the list again.
	kvs = slices.Clone(kvs)
	for i := range kvs {
		kvs[i].Key = strings.TrimPrefix(kvs[i].Key, s.prefix)
	}
	return kvs, err
}

// prefixedWatcher is a watcher of keys below a prefix. Its users see the keys without the prefix.
type prefixedWatcher struct {
	store.Watcher
	prefix string
}

// Next returns the next batch, without the prefix before its keys.
func (w *prefixedWatcher) Next(ctx context.Context) (store.Batch, error) {
	b, err := w.Watcher.Next(ctx)
	// The store may use the events again.
	b.Events = slices.Clone(b.Events)
	for i := range b.Events {
		b.Events[i].Key = strings.TrimPrefix(b.Events[i].Key, w.prefix)
	}
	return b, err
}
