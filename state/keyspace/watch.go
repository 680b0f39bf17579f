package keyspace

import (
	"context"
	"errors"
	"sync"

	"bijou/state/store"
)

// Scope names what a watcher watches: keys, and all keys with prefixes.
type Scope = store.Scope

// Below returns the scope of all keys with one of the prefixes.
func Below(prefixes ...string) Scope { return store.Below(prefixes...) }

// Exactly returns the scope of these keys alone, without keys that begin with one of them.
func Exactly(keys ...string) Scope { return store.Exactly(keys...) }

// KeyValue is one key with its JSON, and the revision at which it was written.
type KeyValue = store.KV

// Change is the change of one key by a commit. Its Revision is the commit's; its Value is empty if
// the key was deleted, and where the store does not tell: then it is to be read.
type Change struct {
	KeyValue
	Deleted bool
}

// IsComplete reports whether the change is complete: it has the key's value, or the key is gone.
func (c Change) IsComplete() bool { return c.Deleted || len(c.Value) > 0 }

// Watcher delivers which keys of its scopes changed. It is for one goroutine at a time,
// but for Close.
type Watcher struct {
	w     store.Watcher
	space *Space
}

// Watch delivers the changes after the revision (View.Revision), in order.
func (s *Space) Watch(ctx context.Context, after int64, scopes ...Scope) (*Watcher, error) {
	var all Scope
	for _, sc := range scopes {
		all.Keys = append(all.Keys, sc.Keys...)
		all.Prefixes = append(all.Prefixes, sc.Prefixes...)
	}

	w, err := s.store.Watch(ctx, after, all)
	if err != nil {
		return nil, err
	}

	return &Watcher{w, s}, nil
}

// Next blocks until the next commit that touched one of the scopes, and returns the keys
// that it touched there. A watcher is there to wake: take a new View for their values.
// ErrHistoryLost: events are missing, take a new View and watch from its revision;
// ErrStoreGone and ErrClosed end it, too.
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

// nextBatch returns the next batch of changes. If changes were missed, it makes the space forget what it
// remembers.
func (w *Watcher) nextBatch(ctx context.Context) (store.Batch, error) {
	batch, err := w.w.Next(ctx)
	w.space.forgetAllIfLost(err)
	return batch, err
}

// Close ends the watcher, and a Next that blocks.
func (w *Watcher) Close() { w.w.Close() }

// AwaitAbsent blocks until the key is not there.
func (s *Space) AwaitAbsent(ctx context.Context, key string) error {
	for {
		var there bool
		var revision int64
		err := s.View(ctx, func(v *View) (err error) {
			_, there, _ = v.Get(key) // after a failure there is no revision, either
			revision, err = v.Revision()
			return err
		})
		if err != nil || !there {
			return err
		}
		if err := s.Await(ctx, revision, Exactly(key)); err != nil {
			return err
		}
	}
}

// Await blocks until something in the scopes has changed after the revision. It also returns if something
// may have changed, since the watcher was behind. Its caller takes a new View.
func (s *Space) Await(ctx context.Context, after int64, scopes ...Scope) error {
	w, err := s.Watch(ctx, after, scopes...)
	if err == nil {
		defer w.Close()
		_, err = w.Next(ctx)
	}
	if errors.Is(err, ErrHistoryLost) {
		return nil
	}

	return err
}

// Feed turns what watchers deliver into a channel, for loops that wait beside other things:
// it collects changes until its owner takes them.
type Feed struct {
	ready chan struct{} // buffered: it is signalled while nobody listens

	mu      sync.Mutex
	pending ChangeSet
}

// ChangeSet has changes since another one was taken, or says that everything may have changed.
type ChangeSet struct {
	All     bool
	Changes []Change
	Err     error // with which the watcher has ended, if its collector said so; then All is true
}

// maxPendingChanges bounds the changes kept for an owner that does not take them. Beyond
// that it has to read everything.
const maxPendingChanges = 4096

// NewFeed returns an empty feed.
func NewFeed() *Feed { return &Feed{ready: make(chan struct{}, 1)} }

// Ready returns a channel that is signalled when something has changed since the last Take.
func (f *Feed) Ready() <-chan struct{} { return f.ready }

// Invalidate makes everything count as changed.
func (f *Feed) Invalidate() { f.push(ChangeSet{All: true}) }

// End tells the owner, as the last change, why the watch has ended.
func (f *Feed) End(why error) { f.push(ChangeSet{All: true, Err: why}) }

// Take returns the changes since the last call. A read after it sees all of them.
func (f *Feed) Take() ChangeSet {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.pending
	f.pending = ChangeSet{}
	return n
}

// Collect blocks until the watcher or ctx ends, and returns why.
func (f *Feed) Collect(ctx context.Context, w *Watcher) error {
	for {
		changes, err := w.Changes(ctx)
		if err != nil {
			return err
		}
		f.push(ChangeSet{Changes: changes})
	}
}

// push adds changes to the pending ones. If there are too many, the receiver must read everything again.
func (f *Feed) push(n ChangeSet) {
	f.mu.Lock()
	f.pending.Err = n.Err
	f.pending.All = f.pending.All || n.All || len(f.pending.Changes)+len(n.Changes) > maxPendingChanges
	if f.pending.All {
		f.pending.Changes = nil
	} else {
		f.pending.Changes = append(f.pending.Changes, n.Changes...)
	}
	f.mu.Unlock()

	select {
	case f.ready <- struct{}{}:
	default:
	}
}
