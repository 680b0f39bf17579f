package host

import (
	"context"
	"errors"
	"time"

	"bijou/state/backoff"
)

// The limits of the interval of poll. It is short at first, since most changes take only a moment.
const (
	minPollInterval = 20 * time.Millisecond
	maxPollInterval = 320 * time.Millisecond
)

// poll calls ok until it returns true or an error, or ctx is done. It is for changes that cannot be
// watched.
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

// timedOut reports whether inner has exceeded its own deadline, and not the deadline of outer.
func timedOut(outer, inner context.Context) bool {
	return outer.Err() == nil && errors.Is(inner.Err(), context.DeadlineExceeded)
}
