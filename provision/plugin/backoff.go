package plugin

import (
	"context"
	"time"
)

const (
	minRetryDelay = time.Second // doubles with each failure
	maxRetryDelay = time.Minute
	stableUptime  = time.Minute     // who lived as long begins anew
	maxRetryWait  = 3 * time.Second // who asks may wait as long
)

// backoff says when a process that ended, or did not begin, is started again.
type backoff struct {
	wanted   Wanted // what it is about: another is tried at once
	failures int
	due      time.Time
	lastErr  error
}

// noteEnd takes up that a process which began then has ended now, and why.
func (b *backoff) noteEnd(began, now time.Time, why error) {
	if now.Sub(began) >= stableUptime {
		b.failures = 0
	}
	b.due = now.Add(min(minRetryDelay<<min(b.failures, 10), maxRetryDelay))
	b.failures++
	b.lastErr = why
}

// awaitRetry returns when it is time, or at once with why it is not if that is long.
func (b *backoff) awaitRetry(ctx context.Context, now time.Time) error {
	left := b.due.Sub(now)
	if left > maxRetryWait {
		return b.lastErr
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
