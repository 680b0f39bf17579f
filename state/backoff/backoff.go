// Package backoff waits between attempts, longer after each failure. So a store that cannot be reached does
// not get too many requests, and a log does not get too many lines.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// MaxDelay is the longest delay of an Exponential.
const MaxDelay = 30 * time.Second

// Exponential counts the failures of one loop, and computes the delays between its attempts. The zero
// Exponential is ready for use. It is not safe for concurrent use.
type Exponential struct{ failures int }

// Reset makes the next delay the shortest again. It must be called after each attempt that has succeeded.
func (e *Exponential) Reset() {
	e.failures = 0
}

// Wait blocks for the delay that Next returns, or until ctx is done. It returns ctx's error if ctx is done. A
// loop that checks ctx itself can ignore that error.
func (e *Exponential) Wait(ctx context.Context) error { return Sleep(ctx, e.Next()) }

// Next counts one more failure, and returns the delay before the next attempt.
func (e *Exponential) Next() time.Duration {
	e.failures++
	return Delay(e.failures-1, 100*time.Millisecond, MaxDelay)
}

// Delay returns the time to wait after a number of earlier failures. Without failures the time is first. Each
// failure doubles the time, up to longest. Then Delay subtracts up to half of the time at random, so that
// processes that failed together do not all try again together.
func Delay(failures int, first, longest time.Duration) time.Duration {
	const maxDoublings = 10
	d := min(first<<min(failures, maxDoublings), longest)
	return d/2 + rand.N(d/2)
}

// Sleep blocks for d, or until ctx is done. It returns ctx's error if ctx is done. A loop that checks ctx
// itself can ignore that error.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Until calls wait with a context that has the deadline. If the deadline passes before wait returns, and ctx
// is not done, Until returns nil. Otherwise it returns wait's error. If the deadline is zero, wait has no
// time limit.
func Until(ctx context.Context, deadline time.Time, wait func(ctx context.Context) error) error {
	if deadline.IsZero() {
		return wait(ctx)
	}

	limited, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	err := wait(limited)
	if limited.Err() != nil && ctx.Err() == nil {
		return nil
	}

	return err
}
