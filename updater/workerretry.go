package updater

import (
	"context"
	"sync"
	"time"
)

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
