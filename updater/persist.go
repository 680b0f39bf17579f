package updater

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"bijou/state"
)

// comeback is how long a store that has failed is left alone.
const comeback = time.Second

// retryStore calls f until the store does not fail any more: a worker whose store is
// away waits. What f decides itself, and a store that is gone for good, is
// returned.
func retryStore(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || errors.Is(err, errStale) || errors.Is(err, state.ErrSessionLost) ||
			errors.Is(err, state.ErrClaimed) || errors.Is(err, state.ErrClaimLost) {
			return err
		}
		if err := awaitRetry(ctx, err); err != nil {
			return err
		}
	}
}

// awaitRetry waits a moment after a fault of the store's, or returns one that nothing
// will mend.
func awaitRetry(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, state.ErrStoreGone) || errors.Is(err, state.ErrClosed) {
		return err
	}
	slog.Warn("the store does not answer as it should; trying again", "error", err)
	select {
	case <-time.After(comeback):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// outageTracker is when a worker's store came back, after it had been away. Its helpers
// and its loop find that out, each at its own time.
type outageTracker struct {
	clock clock
	mu    sync.Mutex
	at    time.Time
}

// noteEnd says that it is back.
func (a *outageTracker) noteEnd() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = a.clock.now()
}

// lastEnd is when it came back last; zero: it never was away.
func (a *outageTracker) lastEnd() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

// retryStore is persist, which minds that the store was away.
func (w *worker) retryStore(ctx context.Context, f func() error) error {
	began, tries := time.Now(), 0
	err := retryStore(ctx, func() error { tries++; return f() })
	if err == nil && (tries > 1 || time.Since(began) > firstLookDelay) {
		w.outage.noteEnd()
	}
	return err
}

// storeCameBack is what the worker's presence tells it: that the store is back.
func (w *worker) storeCameBack() {
	w.outage.noteEnd()
	w.feed.push(changeSet{all: true})
}
