package updater

import (
	"context"
	"errors"
	"sync"

	"bijou/state"
)

// changeFeed collects changes below some prefixes until its owner takes them: for owners
// that cache what they have read, and follow the changes.
type changeFeed struct {
	store    *state.Keyspace
	prefixes []string
	ready    chan struct{} // buffered: it is signalled while nobody listens

	mu      sync.Mutex
	pending changeSet
}

type changeSet struct {
	all     bool // everything may have changed
	changes []state.KeyChange
}

// maxPendingChanges bounds the changes kept for an owner that does not take them. Beyond
// that it has to read everything.
const maxPendingChanges = 4096

func newChangeFeed(s *state.Keyspace, prefixes ...string) *changeFeed {
	return &changeFeed{store: s, prefixes: prefixes, ready: make(chan struct{}, 1)}
}

func (s *changeFeed) push(n changeSet) {
	s.mu.Lock()
	s.pending.all = s.pending.all || n.all || len(s.pending.changes)+len(n.changes) > maxPendingChanges
	if s.pending.changes = append(s.pending.changes, n.changes...); s.pending.all {
		s.pending.changes = nil
	}
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// take returns what has changed since the last call. A read that follows sees all of it.
func (s *changeFeed) take() changeSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.pending
	s.pending = changeSet{}
	return n
}

// run watches until ctx is done. A watcher that ended, or was behind a compaction of the
// store, is replaced, and everything counts as changed.
func (s *changeFeed) run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := s.watch(ctx)
		if ctx.Err() == nil && !errors.Is(err, state.ErrHistoryLost) {
			if err := awaitRetry(ctx, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *changeFeed) watch(ctx context.Context) error {
	var revision int64
	err := s.store.View(ctx, func(v *state.KeyView) (err error) {
		revision, err = v.Revision()
		return err
	})
	if err != nil {
		return err
	}
	w, err := s.store.Watch(ctx, revision, s.prefixes...)
	if err != nil {
		return err
	}
	defer w.Close()
	s.push(changeSet{all: true})
	for {
		changes, err := w.Changes(ctx)
		if err != nil {
			return err
		}
		s.push(changeSet{changes: changes})
	}
}
