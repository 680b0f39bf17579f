package provision

import "time"

const (
	minRetryDelay = 10 * time.Second // doubles each time
	maxRetryDelay = 10 * time.Minute
)

func retryDelay(attempts int) time.Duration {
	return min(minRetryDelay<<min(attempts, 10), maxRetryDelay)
}

// backoffs remembers what was done, so that what does not help is done less and less often: a start
// whose instance ends at once, a stop that leaves the instance there. It is for one goroutine.
type backoffs map[Action]retryBackoff

// retryBackoff counts how often an action was done, and says when it may be again.
type retryBackoff struct {
	attempts int
	due      time.Time
}

func (b backoffs) noteDone(a Action, now time.Time) {
	n := b[a].attempts
	b[a] = retryBackoff{n + 1, now.Add(retryDelay(n))}
}

// If the action helped for as long as it was to be left alone, it counts as done for the first time
// when it is done again.
func (b backoffs) forgetIfHelped(a Action, until time.Time) {
	if entry, ok := b[a]; ok && !until.Before(entry.due) {
		delete(b, a)
	}
}

func (b backoffs) forget(a Action) { delete(b, a) }

// What is due and not wanted any more has helped, and is forgotten.
func (b backoffs) filterDue(actions []Action, now time.Time) (due []Action) {
	wanted := map[Action]bool{}
	for _, a := range actions {
		wanted[a] = true
		if !now.Before(b[a].due) {
			due = append(due, a)
		}
	}
	for a, entry := range b {
		if !wanted[a] && !now.Before(entry.due) {
			delete(b, a)
		}
	}
	return due
}

func (b backoffs) untilDue(actions []Action, now time.Time, limit time.Duration) time.Duration {
	for _, a := range actions {
		if entry, ok := b[a]; ok && now.Before(entry.due) {
			limit = min(limit, entry.due.Sub(now))
		}
	}
	return limit
}
