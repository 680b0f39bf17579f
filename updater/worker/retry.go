package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/clock"
)

// outageTracker keeps when the worker's store came back. The parts of the worker notice
// that each at its own time.
type outageTracker struct {
	clock clock.Clock
	mu    sync.Mutex
	at    time.Time
}

func (a *outageTracker) noteEnd() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = a.clock.Now()
}

// lastEnd is zero if the store never was away.
func (a *outageTracker) lastEnd() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

func (w *worker) retryStore(ctx context.Context, f func() error) error {
	began, tries := time.Now(), 0
	err := retryStore(ctx, func() error { tries++; return f() })
	if err == nil && (tries > 1 || time.Since(began) > firstLookDelay) {
		w.outage.noteEnd()
	}
	return err
}

func (w *worker) storeCameBack() {
	w.outage.noteEnd()
	w.feed.Invalidate()
}

// retryStore calls f until the store does not fail any more: a worker whose store is away
// waits. It returns what f decides itself, and the error of a store that is gone for
// good.
func retryStore(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || errors.Is(err, errStale) || errors.Is(err, keyspace.ErrSessionLost) ||
			errors.Is(err, keyspace.ErrClaimed) || errors.Is(err, keyspace.ErrClaimLost) {
			return err
		}
		if err := updater.AwaitRetry(ctx, err); err != nil {
			return err
		}
	}
}
