package updater

import (
	"context"
	"time"
)

// retryInterval is how long whatever failed is left alone.
const retryInterval = time.Second

// handOverTimeout is how long the successor of a worker that has installed it may take to
// start.
const handOverTimeout = time.Minute

// shutdownTimeout bounds what a process that is told to end still does, also with a store
// that does not answer.
const shutdownTimeout = 5 * time.Second

// waitUntil blocks until ready is signalled, the time has come (zero: never), or ctx is done.
func waitUntil(ctx context.Context, ready <-chan struct{}, until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ready:
	case <-due:
	case <-ctx.Done():
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
