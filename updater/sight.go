package updater

import (
	"context"
	"errors"
	"sync"

	"bijou/state"
)

// sight is what its owner has not looked at yet of what has changed below some
// prefixes: for who keeps what it has read, and follows the changes.
type sight struct {
	store    *state.Keyspace
	prefixes []string
	bell     chan struct{} // buffered: it is rung while nobody listens

	mu   sync.Mutex
	seen news
}

// news is what has changed.
type news struct {
	all     bool // everything may have changed
	changes []state.KeyChange
}

// maxNews is how many changes are kept for an owner that does not look. Beyond that
// it reads everything.
const maxNews = 4096

func newSight(s *state.Keyspace, prefixes ...string) *sight {
	return &sight{store: s, prefixes: prefixes, bell: make(chan struct{}, 1)}
}

// ring says that something has changed.
func (s *sight) ring(n news) {
	s.mu.Lock()
	s.seen.all = s.seen.all || n.all || len(s.seen.changes)+len(n.changes) > maxNews
	if s.seen.changes = append(s.seen.changes, n.changes...); s.seen.all {
		s.seen.changes = nil
	}
	s.mu.Unlock()
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// changed returns what has changed since it was asked last. Whoever reads afterwards
// reads that, too.
func (s *sight) changed() news {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.seen
	s.seen = news{}
	return n
}

// run watches until ctx is done. A watcher that was behind (the store was
// compacted) or that ended begins anew, and everything is looked at again.
func (s *sight) run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := s.watch(ctx)
		if ctx.Err() == nil && !errors.Is(err, state.ErrCompacted) {
			if err := bear(ctx, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// watch rings for every change until watching fails.
func (s *sight) watch(ctx context.Context) error {
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
	s.ring(news{all: true})
	for {
		changes, err := w.Changes(ctx)
		if err != nil {
			return err
		}
		s.ring(news{changes: changes})
	}
}
