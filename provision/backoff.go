package provision

import "time"

const (
	firstRetry = 10 * time.Second // doubles each time
	lastRetry  = 10 * time.Minute
)

// delay is how long something that has not helped so many times before is left
// alone.
func delay(attempts int) time.Duration {
	return min(firstRetry<<min(attempts, 10), lastRetry)
}

// holds remembers what was done, so that what does not help is done less and less
// often: a start whose instance ends at once, a stop that leaves the instance
// there. It is for one goroutine.
type holds map[Action]hold

// hold is how often an action was done, and when it may be again.
type hold struct {
	attempts int
	due      time.Time
}

// done notes that the action was done, and has ended.
func (h holds) done(a Action, now time.Time) {
	n := h[a].attempts
	h[a] = hold{n + 1, now.Add(delay(n))}
}

// noteHelp notes that the action helped until that time: if that is as long as it
// was to be left alone, it counts as done for the first time when it is done again.
func (h holds) noteHelp(a Action, until time.Time) {
	if hold, ok := h[a]; ok && !until.Before(hold.due) {
		delete(h, a)
	}
}

// forget says that the action may be done at once.
func (h holds) forget(a Action) { delete(h, a) }

// filter leaves out the actions that are not due. What is due and not wanted any
// more has helped, and is forgotten.
func (h holds) filter(actions []Action, now time.Time) (due []Action) {
	wanted := map[Action]bool{}
	for _, a := range actions {
		wanted[a] = true
		if !now.Before(h[a].due) {
			due = append(due, a)
		}
	}
	for a, hold := range h {
		if !wanted[a] && !now.Before(hold.due) {
			delete(h, a)
		}
	}
	return due
}

// next is how long it is until one of the actions is due; limit at most.
func (h holds) next(actions []Action, now time.Time, limit time.Duration) time.Duration {
	for _, a := range actions {
		if hold, ok := h[a]; ok && now.Before(hold.due) {
			limit = min(limit, hold.due.Sub(now))
		}
	}
	return limit
}
