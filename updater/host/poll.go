package host

import (
	"context"
	"errors"
	"time"

	"bijou/state/backoff"
)

// The times between two looks at something that tells nobody when it changes: short at
// first, since most things take moments.
const (
	minPollInterval = 20 * time.Millisecond
	maxPollInterval = 320 * time.Millisecond
)

// poll calls ok until it is true or fails, or ctx is done.
func poll(ctx context.Context, ok func() (bool, error)) error {
	for gap := minPollInterval; ; gap = min(2*gap, maxPollInterval) {
		if yes, err := ok(); yes || err != nil {
			return err
		}
		if backoff.Sleep(ctx, gap) != nil {
			return context.Cause(ctx)
		}
	}
}

// timedOut reports whether inner has run into its own limit, and not its caller's.
func timedOut(outer, inner context.Context) bool {
	return outer.Err() == nil && errors.Is(inner.Err(), context.DeadlineExceeded)
}
