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

// poll calls check until check returns true or an error, or ctx is done. It is for changes that cannot be
// watched. If ctx is done, it returns the cause.
func poll(ctx context.Context, check func() (done bool, err error)) error {
	for interval := minPollInterval; ; interval = min(2*interval, maxPollInterval) {
		done, err := check()
		if err != nil {
			return err
		}
		if done {
			return nil
		}
		if backoff.Sleep(ctx, interval) != nil {
			return context.Cause(ctx)
		}
	}
}

// timedOut reports whether inner has exceeded its own deadline, and not the deadline of outer.
func timedOut(outer, inner context.Context) bool {
	return outer.Err() == nil && errors.Is(inner.Err(), context.DeadlineExceeded)
}
