package clock

import (
	"context"
	"time"
)

// WaitUntil blocks until ready is signalled, the time has come (zero: never), or ctx is done.
func WaitUntil(ctx context.Context, ready <-chan struct{}, until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		due = time.After(time.Until(until))
	}
	select {
	case <-ready:
	case <-due:
	case <-ctx.Done():
	}
}
