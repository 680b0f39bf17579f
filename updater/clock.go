package updater

import "time"

// clock is a process's own time: it begins at the machine's clock and goes on evenly,
// whatever the machine's clock is set to meanwhile. Times before the beginning, or of a
// future that the machine's clock had once, count as the beginning.
type clock struct {
	wallStart      time.Time // as the machine's clock had it
	monotonicStart time.Time // the same moment on the monotonic clock
}

func newClock() clock {
	now := time.Now()
	return clock{wallStart: now.Round(0), monotonicStart: now}
}

func (c clock) now() time.Time { return c.wallStart.Add(time.Since(c.monotonicStart)) }

func (c clock) clamp(t time.Time) time.Time { return clampTime(t, c.wallStart, c.now()) }

func clampTime(t, from, to time.Time) time.Time {
	switch {
	case t.Before(from):
		return from
	case t.After(to):
		return to
	}
	return t
}

// toWallClock returns the time by the machine's clock, if nobody sets that meanwhile;
// zero stays zero.
func (c clock) toWallClock(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.Now().Add(t.Sub(c.now()))
}
