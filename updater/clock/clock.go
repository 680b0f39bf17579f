// Package clock provides a process with its own steady time. The leader and the workers of an update use it,
// so that setting the host's clock does not affect their timeouts.
package clock

import (
	"context"
	"time"
)

// Clock starts at the host's time and continues steadily, even if the host's clock is set.
type Clock struct {
	wallStart      time.Time // the start, by the host's clock
	monotonicStart time.Time // the same moment on the monotonic clock
}

// New returns a clock that starts now.
func New() Clock { return StartAt(time.Now()) }

// StartAt returns a clock that starts now, on a host whose clock shows wall.
func StartAt(wall time.Time) Clock {
	return Clock{wallStart: wall.Round(0), monotonicStart: time.Now()}
}

// Now returns the current time of this clock.
func (c Clock) Now() time.Time { return c.wallStart.Add(time.Since(c.monotonicStart)) }

// Clamp returns the time closest to t that lies between the clock's start and now.
func (c Clock) Clamp(t time.Time) time.Time { return Clamp(t, c.wallStart, c.Now()) }

// Clamp returns the time closest to t that lies between from and to.
func Clamp(t, from, to time.Time) time.Time {
	switch {
	case t.Before(from):
		return from
	case t.After(to):
		return to
	}

	return t
}

// ToWall converts a time of this clock to the host's clock, as the host's clock is set now. A zero time stays
// zero.
func (c Clock) ToWall(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.Now().Add(t.Sub(c.Now()))
}

// WaitUntil blocks until ready is signalled, the time has come, or ctx is done. A zero time never comes.
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
