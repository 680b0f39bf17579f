package updater

import "time"

// clock is a process's own time: it begins where the machine's clock was then,
// and goes on evenly, however that is set. Times of before, or of a future that
// the machine's clock knew once, count as the beginning.
type clock struct {
	began   time.Time // as the machine's clock had it
	started time.Time // the same moment on the monotonic clock
}

func newClock() clock {
	now := time.Now()
	return clock{began: now.Round(0), started: now}
}

func (c clock) now() time.Time { return c.began.Add(time.Since(c.started)) }

// within is the time if it lies between the beginning and now, else the nearer of
// the two.
func (c clock) within(t time.Time) time.Time { return within(t, c.began, c.now()) }

func within(t, from, to time.Time) time.Time {
	switch {
	case t.Before(from):
		return from
	case t.After(to):
		return to
	}
	return t
}

// since is a journal of before, as of the beginning.
func (c clock) since(j Journal) Journal {
	j.At = c.within(j.At)
	return j
}

// outside is the time as the machine's clock will have it, if nobody sets that; zero
// stays zero.
func (c clock) outside(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.Now().Add(t.Sub(c.now()))
}
