package plugin

import (
	"context"
	"time"

	"bijou/state/backoff"
)

const (
	minRetryDelay = time.Second // doubles with each failure
	maxRetryDelay = time.Minute
	stableUptime  = time.Minute     // a process that lived as long starts the count anew
	maxRetryWait  = 3 * time.Second // callers block no longer
)

// restartBackoff delays the next start of a process that ended, or did not begin.
type restartBackoff struct {
	wanted   Wanted // what it is about: another is tried at once
	failures int
	due      time.Time
	lastErr  error
}

func (b *restartBackoff) noteEnd(began, now time.Time, why error) {
	if now.Sub(began) >= stableUptime {
		b.failures = 0
	}
	b.due = now.Add(min(minRetryDelay<<min(b.failures, 10), maxRetryDelay))
	b.failures++
	b.lastErr = why
}

// It fails at once with the last error if the wait would be long.
func (b *restartBackoff) awaitRetry(ctx context.Context, now time.Time) error {
	left := b.due.Sub(now)
	if left > maxRetryWait {
		return b.lastErr
	}
	if left <= 0 {
		return nil
	}
	return backoff.Sleep(ctx, left)
}
