package plugin

import (
	"context"
	"time"
)

const (
	firstDelay = time.Second // doubles with each failure
	lastDelay  = time.Minute
	steady     = time.Minute     // who lived as long begins anew
	bearable   = 3 * time.Second // who asks may wait as long
)

// backoff says when a process that ended, or did not begin, is started again.
type backoff struct {
	wanted   Wanted // what it is about: another is tried at once
	failures int
	due      time.Time
	why      error
}

// note takes up that a process which began then has ended now, and why.
func (b *backoff) note(began, now time.Time, why error) {
	if now.Sub(began) >= steady {
		b.failures = 0
	}
	b.due = now.Add(min(firstDelay<<min(b.failures, 10), lastDelay))
	b.failures++
	b.why = why
}

// await returns when it is time, or at once with why it is not if that is long.
func (b *backoff) await(ctx context.Context, now time.Time) error {
	left := b.due.Sub(now)
	if left > bearable {
		return b.why
	}
	if left <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(left):
		return nil
	}
}
