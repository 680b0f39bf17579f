package updater

import (
	"context"
	"errors"
	"sync"

	"bijou/state"
)

// changeFeed is what its owner has not looked at yet of what has changed below some
// prefixes: for who keeps what it has read, and follows the changes.
type changeFeed struct {
	store    *state.Keyspace
	prefixes []string
	ready    chan struct{} // buffered: it is rung while nobody listens

	mu      sync.Mutex
	pending changeSet
}

// changeSet is what has changed.
type changeSet struct {
	all     bool // everything may have changed
	changes []state.KeyChange
}

// maxPendingChanges is how many changes are kept for an owner that does not look. Beyond that
// it reads everything.
const maxPendingChanges = 4096

func newChangeFeed(s *state.Keyspace, prefixes ...string) *changeFeed {
	return &changeFeed{store: s, prefixes: prefixes, ready: make(chan struct{}, 1)}
}

// push says that something has changed.
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

// take returns what has changed since it was asked last. Whoever reads afterwards
// reads that, too.
func (s *changeFeed) take() changeSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.pending
	s.pending = changeSet{}
	return n
}

// run watches until ctx is done. A watcher that was behind (the store was
// compacted) or that ended begins anew, and everything is looked at again.
func (s *changeFeed) run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := s.watch(ctx)
		if ctx.Err() == nil && !errors.Is(err, state.ErrCompacted) {
			if err := awaitRetry(ctx, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// watch rings for every change until watching fails.
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
