// Package pace spaces attempts that keep failing, so that neither a store that
// is away nor a log is overrun. Only the packages of agent import it.
package pace

import (
	"context"
	"math/rand/v2"
	"time"
)

// Most is the longest pause.
const Most = 30 * time.Second

// Pacer spaces the attempts of one loop. The zero Pacer is ready for use.
type Pacer struct{ failures int }

// Reset says that an attempt has succeeded.
func (p *Pacer) Reset() { p.failures = 0 }

// Pause waits until the next attempt is due, or answers why ctx is done: a tenth
// of a second at first, then twice as long each time up to Most, and at random
// by half of that, so that a thousand units do not come back in step.
func (p *Pacer) Pause(ctx context.Context) error { return Sleep(ctx, p.Next()) }

// Next is how long Pause waits, for who says so before.
func (p *Pacer) Next() time.Duration {
	longest := min(100*time.Millisecond<<min(p.failures, 10), Most)
	p.failures++
	return longest/2 + rand.N(longest/2)
}

// Sleep waits, or answers why ctx is done.
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
