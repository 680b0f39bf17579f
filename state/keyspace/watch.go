package keyspace

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"bijou/state/store"
)

// Scope is the set of keys that a watcher watches: single keys, and all keys with certain prefixes.
type Scope = store.Scope

// Below returns the scope of all keys with one of the prefixes.
func Below(prefixes ...string) Scope { return store.Below(prefixes...) }

// Exactly returns the scope of only these keys, without keys that begin with one of them.
func Exactly(keys ...string) Scope { return store.Exactly(keys...) }

// KeyValue is one key with its JSON, and the revision at which it was written.
type KeyValue = store.KV

// Change is the change of one key by a commit. Its Revision is the commit's. Its Value is empty if the key was
// deleted, or if the store does not send the value. In that case the caller must read the key.
type Change struct {
	KeyValue
	Deleted bool
}

// IsComplete reports whether the change is complete: it has the key's value, or the key is gone.
func (c Change) IsComplete() bool { return c.Deleted || len(c.Value) > 0 }

// Watcher delivers the changes of the keys in its scopes. Only one goroutine at a time can call its methods,
// except Close.
type Watcher struct {
	w     store.Watcher
	space *Space
}

// Watch returns a watcher that delivers the changes after the revision, in order. The revision usually comes
// from [View.Revision].
func (s *Space) Watch(ctx context.Context, after int64, scopes ...Scope) (*Watcher, error) {
	var union Scope
	for _, scope := range scopes {
		union.Keys = append(union.Keys, scope.Keys...)
		union.Prefixes = append(union.Prefixes, scope.Prefixes...)
	}

	w, err := s.store.Watch(ctx, after, union)
	if err != nil {
		return nil, err
	}

	return &Watcher{w, s}, nil
}

// Next blocks until the next commit that changes keys in the scopes, and returns these keys. The caller reads
// their values in a new View.
//
// Next returns ErrHistoryLost if changes were missed. The caller must then take a new View and watch from its
// revision. Next returns ErrStoreGone if the store is gone, and ErrClosed if the Watcher or the Space is
// closed.
func (w *Watcher) Next(ctx context.Context) ([]string, error) {
	batch, err := w.nextBatch(ctx)
	if err != nil {
		return nil, err
	}

	var keys []string
	for _, e := range batch.Events {
		keys = append(keys, e.Key)
	}
	return keys, nil
}

// Changes does what Next does, and returns the keys' values, as far as the store sends them.
func (w *Watcher) Changes(ctx context.Context) ([]Change, error) {
	batch, err := w.nextBatch(ctx)
	if err != nil {
		return nil, err
	}

	var changes []Change
	for _, e := range batch.Events {
		kv := KeyValue{Key: e.Key, Value: e.Value, Revision: batch.Revision}
		changes = append(changes, Change{KeyValue: kv, Deleted: e.Deleted})
	}

	return changes, nil
}

// nextBatch returns the next batch of changes. If changes were missed, it empties the space's memory, since
// an older copy may have replaced the store.
func (w *Watcher) nextBatch(ctx context.Context) (store.Batch, error) {
	batch, err := w.w.Next(ctx)
	w.space.forgetAllIfHistoryLost(err)
	return batch, err
}

// Close ends the watcher, and a call of Next or Changes that blocks.
func (w *Watcher) Close() { w.w.Close() }

// AwaitAbsent blocks until the key does not exist.
func (s *Space) AwaitAbsent(ctx context.Context, key string) error {
	for {
		var exists bool
		var revision int64
		err := s.View(ctx, func(v *View) (err error) {
			// If Get fails, Revision returns the same error.
			_, exists, _ = v.Get(key)
			revision, err = v.Revision()
			return err
		})
		if err != nil {
			return err
		}
		if !exists {
			return nil
		}
		// The watch begins at the revision of the read, so that it misses no deletion.
		if err := s.Await(ctx, revision, Exactly(key)); err != nil {
			return err
		}
	}
}

// Await blocks until a key in the scopes has changed after the revision. It also returns nil if changes were
// missed, since a key may have changed then. The caller must read the keys in a new View.
func (s *Space) Await(ctx context.Context, after int64, scopes ...Scope) error {
	err := s.awaitNext(ctx, after, scopes...)
	if errors.Is(err, ErrHistoryLost) {
		return nil
	}
	return err
}

// awaitNext does what Await does, but returns ErrHistoryLost if changes were missed.
func (s *Space) awaitNext(ctx context.Context, after int64, scopes ...Scope) error {
	w, err := s.Watch(ctx, after, scopes...)
	if err != nil {
		return err
	}
	defer w.Close()

	_, err = w.Next(ctx)
	return err
}

// Feed collects the changes of watchers until its owner takes them. Its channel lets a loop wait for changes
// and for other events at the same time.
type Feed struct {
	ready chan struct{} // buffered, so that a signal is kept while nobody listens

	mu      sync.Mutex
	pending ChangeSet
}

// ChangeSet holds the changes since the previous Take. If All is true, any key may have changed, and Changes
// is empty.
type ChangeSet struct {
	All     bool
	Changes []Change
	Err     error // the error that ended the watch, as given to End; All is then true
}

// maxPendingChanges limits the changes kept for an owner that does not take them. If there are more, the owner
// must read everything.
const maxPendingChanges = 4096

// NewFeed returns an empty feed.
func NewFeed() *Feed { return &Feed{ready: make(chan struct{}, 1)} }

// Ready returns a channel that is signalled when something has changed since the last Take.
func (f *Feed) Ready() <-chan struct{} { return f.ready }

// Invalidate makes everything count as changed.
func (f *Feed) Invalidate() { f.push(ChangeSet{All: true}) }

// End pushes a last change with the reason why the watch has ended.
func (f *Feed) End(why error) { f.push(ChangeSet{All: true, Err: why}) }

// Take returns the changes since the last call. A read after Take sees all of these changes.
func (f *Feed) Take() ChangeSet {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.pending
	f.pending = ChangeSet{}
	return taken
}

// Collect adds the watcher's changes to the feed until the watcher or ctx ends. It returns the error that
// ended the collection.
func (f *Feed) Collect(ctx context.Context, w *Watcher) error {
	for {
		changes, err := w.Changes(ctx)
		if err != nil {
			return err
		}
		f.push(ChangeSet{Changes: changes})
	}
}

// push adds changes to the pending changes, and signals Ready. If there are too many changes, it drops all
// of them and sets All instead.
func (f *Feed) push(added ChangeSet) {
	f.mu.Lock()
	// The first error remains.
	f.pending.Err = cmp.Or(f.pending.Err, added.Err)
	tooMany := len(f.pending.Changes)+len(added.Changes) > maxPendingChanges
	f.pending.All = f.pending.All || added.All || tooMany
	if f.pending.All {
		f.pending.Changes = nil
	} else {
		f.pending.Changes = append(f.pending.Changes, added.Changes...)
	}
	f.mu.Unlock()

	select {
	case f.ready <- struct{}{}:
	default:
		// The owner has not received the previous signal yet, and one signal is enough.
	}
}
