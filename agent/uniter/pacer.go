package uniter

import (
	"context"
	"math/rand/v2"
	"time"
)

// pacer spaces attempts that keep failing: longer each time up to half a minute,
// and at random, so that a thousand units do not come back to a store in step.
type pacer struct{ failures int }

func (p *pacer) reset() { p.failures = 0 }

// pause waits until the next attempt is due, or ctx is done.
func (p *pacer) pause(ctx context.Context) error {
	longest := min(100*time.Millisecond<<min(p.failures, 10), 30*time.Second)
	p.failures++
	return sleep(ctx, longest/2+rand.N(longest/2))
}

// backoff is the time until a hook that has failed so many times in a row is
// run again.
func backoff(attempts int) time.Duration {
	return min(5*time.Second<<min(attempts-1, 10), 5*time.Minute)
}
