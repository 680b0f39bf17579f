package updater

import (
	"context"
	"errors"
	"strings"
	"sync"

	"bijou/state"
)

// changes are what a worker has not seen yet.
type changes struct {
	all     bool // everything may have changed
	request bool
	config  bool
}

func (c changes) any() bool { return c.all || c.request || c.config }

// sight watches the store for a worker, which is woken by N events a step for N
// workers: only the request's key is watched, not the other workers' records.
type sight struct {
	store    *state.Keyspace
	prefixes []string
	bell     chan struct{} // buffered: it is rung while nobody listens

	mu   sync.Mutex
	seen changes
}

func newSight(s *state.Keyspace, prefixes ...string) *sight {
	return &sight{store: s, prefixes: prefixes, bell: make(chan struct{}, 1)}
}

// ring says that something has changed.
func (s *sight) ring(c changes) {
	s.mu.Lock()
	s.seen = changes{all: s.seen.all || c.all, request: s.seen.request || c.request, config: s.seen.config || c.config}
	s.mu.Unlock()
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// changed returns what has changed since it was asked last.
func (s *sight) changed() changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.seen
	s.seen = changes{}
	return c
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
	s.ring(changes{all: true})
	for {
		keys, err := w.Next(ctx)
		if err != nil {
			return err
		}
		s.ring(sort(keys))
	}
}

// sort tells what the keys are about.
func sort(keys []string) (c changes) {
	for _, k := range keys {
		c.request = c.request || k == Keys().Current()
		c.config = c.config || strings.HasPrefix(k, Keys().AllConfig())
	}
	return c
}
