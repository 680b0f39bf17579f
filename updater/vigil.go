package updater

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bijou/state"
)

// again is how long whatever went wrong is left alone before it is tried again.
const again = time.Second

// vigil rings a bell when something has changed below its prefixes, or may have:
// also at its beginning, and when events were missed.
type vigil struct {
	store    *state.Keyspace
	prefixes []string
	bell     chan struct{} // buffered: it is rung while nobody listens
}

func newVigil(s *state.Keyspace, prefixes ...string) *vigil {
	return &vigil{store: s, prefixes: prefixes, bell: make(chan struct{}, 1)}
}

func (v *vigil) ring() {
	select {
	case v.bell <- struct{}{}:
	default:
	}
}

// run watches until ctx is done. A watcher that has fallen behind begins anew.
func (v *vigil) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := v.watch(ctx)
		if errors.Is(err, state.ErrCompacted) {
			slog.Debug("the watcher was behind, and begins anew", "part", "updater")
			continue
		}
		pause(ctx, again)
	}
}

// watch rings until the watcher ends.
func (v *vigil) watch(ctx context.Context) error {
	var revision int64
	err := v.store.View(ctx, func(view *state.KeyView) (err error) {
		revision, err = view.Revision()
		return err
	})
	if err != nil {
		return err
	}
	w, err := v.store.Watch(ctx, revision, v.prefixes...)
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		v.ring()
		if _, err := w.Next(ctx); err != nil {
			return err
		}
	}
}

// wait waits for the bell, or until the time if that is not zero.
func (v *vigil) wait(ctx context.Context, until time.Time) { await(ctx, v.bell, until) }

// await waits for a bell, or until the time if that is not zero.
func await(ctx context.Context, bell <-chan struct{}, until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-bell:
	case <-due:
	case <-ctx.Done():
	}
}

// pause waits so long, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
