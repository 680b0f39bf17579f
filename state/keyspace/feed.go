package keyspace

import (
	"context"
	"sync"
)

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

// Ready is signalled when something has changed since the last Take.
func (f *Feed) Ready() <-chan struct{} { return f.ready }

// Invalidate has everything count as changed.
func (f *Feed) Invalidate() { f.push(ChangeSet{All: true}) }

// End tells the owner, as the last change, why no more will come.
func (f *Feed) End(why error) { f.push(ChangeSet{All: true, Err: why}) }

// Take returns what has changed since the last call. A read that follows sees all of it.
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

func (f *Feed) push(n ChangeSet) {
	f.mu.Lock()
	f.pending.Err = n.Err
	f.pending.All = f.pending.All || n.All || len(f.pending.Changes)+len(n.Changes) > maxPendingChanges
	if f.pending.Changes = append(f.pending.Changes, n.Changes...); f.pending.All {
		f.pending.Changes = nil
	}
	f.mu.Unlock()
	select {
	case f.ready <- struct{}{}:
	default:
	}
}
