// Package backoff waits: for a time, and longer after each failure, so that neither a store
// that is away nor a log is overrun. It imports nothing of bijou.
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

// Reset makes the next wait the shortest again. Call it after an attempt that has succeeded.
func (e *Exponential) Reset() {
	e.failures = 0
}

// Wait blocks until the next attempt is due, or returns why ctx is done.
func (e *Exponential) Wait(ctx context.Context) error { return Sleep(ctx, e.Next()) }

// Next returns the delay before the next attempt: Delay's from a tenth of a second to MaxDelay.
func (e *Exponential) Next() time.Duration {
	e.failures++
	return Delay(e.failures-1, 100*time.Millisecond, MaxDelay)
}

// Delay returns the time to wait after that many failures: first, doubled for each failure up to longest.
// It subtracts up to half of that at random, so that processes that failed together do not all return at
// once.
func Delay(failures int, first, longest time.Duration) time.Duration {
	d := min(first<<min(failures, 10), longest)
	return d/2 + rand.N(d/2)
}

// Sleep blocks for d. It returns why ctx is done, then or meanwhile.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Until waits as wait does, and no longer than until the time, at which it returns nil; a zero time is never.
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
