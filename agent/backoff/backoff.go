// Package backoff spaces attempts that keep failing, so that neither a store that
// is away nor a log is overrun. Only the packages of agent import it.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// MaxDelay is the longest delay.
const MaxDelay = 30 * time.Second

// Exponential spaces the attempts of one loop. The zero Exponential is ready for use.
type Exponential struct{ failures int }

// Reset is called after an attempt that has succeeded.
func (e *Exponential) Reset() { e.failures = 0 }

// Wait blocks until the next attempt is due, or returns why ctx is done.
func (e *Exponential) Wait(ctx context.Context) error { return Sleep(ctx, e.Next()) }

// Next returns the delay before the next attempt: a tenth of a second at first, then twice
// as long each time up to MaxDelay, and at random by half of that, so that a thousand units
// do not come back in step.
func (e *Exponential) Next() time.Duration {
	longest := min(100*time.Millisecond<<min(e.failures, 10), MaxDelay)
	e.failures++
	return longest/2 + rand.N(longest/2)
}

// Sleep blocks for d, or returns why ctx is done.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
