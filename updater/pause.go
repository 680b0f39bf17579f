package updater

import (
	"context"
	"time"
)

// again is how long whatever went wrong is left alone before it is tried again.
const again = time.Second

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
