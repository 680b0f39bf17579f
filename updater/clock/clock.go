// Package clock is a process's own time, and waiting in it. Leader and workers of an update
// use it, so that no time-out depends on what the machine's clock is set to.
package clock

import (
	"context"
	"time"
)

// Clock begins at the machine's clock and goes on evenly, whatever the machine's clock is
// set to meanwhile. Times before the beginning, or of a future that the machine's clock had
// once, count as the beginning.
type Clock struct {
	wallStart      time.Time // as the machine's clock had it
	monotonicStart time.Time // the same moment on the monotonic clock
}

// New returns a clock that begins now.
func New() Clock { return StartAt(time.Now()) }

// StartAt returns a clock that begins now, on a machine whose clock says wall.
func StartAt(wall time.Time) Clock {
	return Clock{wallStart: wall.Round(0), monotonicStart: time.Now()}
}

// Now returns the time.
func (c Clock) Now() time.Time { return c.wallStart.Add(time.Since(c.monotonicStart)) }

// Clamp returns the time that is nearest to t of those since the beginning.
func (c Clock) Clamp(t time.Time) time.Time { return Clamp(t, c.wallStart, c.Now()) }

// Clamp returns the time that is nearest to t of those between from and to.
func Clamp(t, from, to time.Time) time.Time {
	switch {
	case t.Before(from):
		return from
	case t.After(to):
		return to
	}

	return t
}

// ToWall returns the time by the machine's clock, if nobody has set that clock meanwhile. A zero time stays
// zero.
func (c Clock) ToWall(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.Now().Add(t.Sub(c.Now()))
}

// WaitUntil blocks until ready is signalled, the time has come (zero: never), or ctx is done.
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
