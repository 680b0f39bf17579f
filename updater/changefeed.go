package updater

import (
	"context"
	"errors"
	"sync"

	"bijou/state/keyspace"
)

// ChangeFeed collects changes below some prefixes until its owner takes them: for owners
// that cache what they have read, and follow the changes.
type ChangeFeed struct {
	store    *keyspace.Space
	prefixes []string
	ready    chan struct{} // buffered: it is signalled while nobody listens

	mu      sync.Mutex
	pending ChangeSet
}

// ChangeSet has changes since another one was taken, or says that everything may have changed.
type ChangeSet struct {
	All     bool
	Changes []keyspace.Change
}

// maxPendingChanges bounds the changes kept for an owner that does not take them. Beyond
// that it has to read everything.
const maxPendingChanges = 4096

// NewChangeFeed returns one of the prefixes, which collects as long as it runs.
func NewChangeFeed(s *keyspace.Space, prefixes ...string) *ChangeFeed {
	return &ChangeFeed{store: s, prefixes: prefixes, ready: make(chan struct{}, 1)}
}

func (s *ChangeFeed) push(n ChangeSet) {
	s.mu.Lock()
	s.pending.All = s.pending.All || n.All || len(s.pending.Changes)+len(n.Changes) > maxPendingChanges
	if s.pending.Changes = append(s.pending.Changes, n.Changes...); s.pending.All {
		s.pending.Changes = nil
	}
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Ready is signalled when something has changed since the last Take.
func (s *ChangeFeed) Ready() <-chan struct{} { return s.ready }

// Invalidate has everything count as changed.
func (s *ChangeFeed) Invalidate() { s.push(ChangeSet{All: true}) }

// Take returns what has changed since the last call. A read that follows sees all of it.
func (s *ChangeFeed) Take() ChangeSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.pending
	s.pending = ChangeSet{}
	return n
}

// Run watches until ctx is done. A watcher that ended, or was behind a compaction of the
// store, is replaced, and everything counts as changed.
func (s *ChangeFeed) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := s.watch(ctx)
		if ctx.Err() == nil && !errors.Is(err, keyspace.ErrHistoryLost) {
			if err := AwaitRetry(ctx, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *ChangeFeed) watch(ctx context.Context) error {
	var revision int64
	err := s.store.View(ctx, func(v *keyspace.View) (err error) {
		revision, err = v.Revision()
		return err
	})
	if err != nil {
		return err
	}
	w, err := s.store.Watch(ctx, revision, keyspace.Below(s.prefixes...))
	if err != nil {
		return err
	}
	defer w.Close()
	s.Invalidate()
	for {
		changes, err := w.Changes(ctx)
		if err != nil {
			return err
		}
		s.push(ChangeSet{Changes: changes})
	}
}
