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

// Exponential spaces the attempts of one loop. The zero Exponential is ready for use.
type Exponential struct{ failures int }

// Reset makes the next wait the shortest again. It must be called after each attempt that has succeeded.
func (e *Exponential) Reset() {
	e.failures = 0
}

// Wait blocks until the next attempt is due. It returns ctx's error if ctx is done. A loop that checks ctx
// itself can ignore that error.
func (e *Exponential) Wait(ctx context.Context) error { return Sleep(ctx, e.Next()) }

// Next returns the delay before the next attempt. It counts the attempt as failed.
func (e *Exponential) Next() time.Duration {
	e.failures++
	return Delay(e.failures-1, 100*time.Millisecond, MaxDelay)
}

// Delay returns the time to wait after a number of failures. It begins with first, and doubles with each
// failure up to longest. It subtracts up to half of this time at random, so that processes that failed
// together do not all try again together.
func Delay(failures int, first, longest time.Duration) time.Duration {
	d := min(first<<min(failures, 10), longest)
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

// Until calls wait with a context that ends at the given time, and returns nil if that time has come. If at
// is zero, the context has no such end.
func Until(ctx context.Context, at time.Time, wait func(ctx context.Context) error) error {
	if at.IsZero() {
		return wait(ctx)
	}

	limited, cancel := context.WithDeadline(ctx, at)
	defer cancel()
	err := wait(limited)
	if limited.Err() != nil && ctx.Err() == nil {
		return nil
	}

	return err
}
