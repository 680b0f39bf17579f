package updater

import "time"

// clock is a process's own time: it begins where the machine's clock was then,
// and goes on evenly, however that is set. Times of before, or of a future that
// the machine's clock knew once, count as the beginning.
type clock struct {
	wallStart      time.Time // as the machine's clock had it
	monotonicStart time.Time // the same moment on the monotonic clock
}

func newClock() clock {
	now := time.Now()
	return clock{wallStart: now.Round(0), monotonicStart: now}
}

func (c clock) now() time.Time { return c.wallStart.Add(time.Since(c.monotonicStart)) }

// clamp is the time if it lies between the beginning and now, else the nearer of
// the two.
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

// clampJournal is a journal of before, as of the beginning.
func (c clock) clampJournal(j Journal) Journal {
	j.At = c.clamp(j.At)
	return j
}

// toWallClock is the time as the machine's clock will have it, if nobody sets that; zero
// stays zero.
func (c clock) toWallClock(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.Now().Add(t.Sub(c.now()))
}
