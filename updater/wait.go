package updater

import (
	"context"
	"time"
)

// retryInterval is how long whatever went wrong is left alone before it is tried again.
const retryInterval = time.Second

// shutdownTimeout bounds what a process that is told to end still does, also with a store
// that does not answer.
const shutdownTimeout = 5 * time.Second

// waitUntil waits for a bell, or until the time if that is not zero.
func waitUntil(ctx context.Context, bell <-chan struct{}, until time.Time) {
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

// sleep waits so long, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
