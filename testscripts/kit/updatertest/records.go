// Package updatertest has what tests of the updater's leader, of its workers and of both
// begin with: records of one update, stores, and a server that is none. It imports what both
// share only; tests of either may import it.
package updatertest

import (
	"time"

	"bijou/updater/record"
)

// T0 is when the update of these records began.
func T0() time.Time { return time.Date(2018, 11, 7, 12, 0, 0, 0, time.UTC) }

// Request is an update of the servers 1, 2 and 10.
func Request(change func(*record.Request)) *record.Request {
	r := record.Request{Version: "1.1", Servers: []int{1, 2, 10}, ID: 4, Attempt: 1, StartedAt: T0(), AttemptAt: T0()}
	if change != nil {
		change(&r)
	}
	return &r
}

// Ended is that update, done or stopped.
func Ended(stop bool) *record.Request {
	return Request(func(r *record.Request) {
		at := T0()
		r.Stop, r.EndedAt, r.Why = stop, &at, map[bool]string{true: "server 2, step cke/stop: broken"}[stop]
	})
}

// Opened is its gate, open up to the step.
func Opened(step int) record.Gate {
	return record.Gate{Request: 4, StartedAt: T0(), Attempt: 1, Step: step, At: T0()}
}

// At is the record of one of its workers.
func At(step int) record.Status {
	return record.Status{Version: "1.1", Request: 4, Attempt: 1, Step: step, StepName: "step"}
}

// Came is the record of a worker that has come to a step of a plan with two components: a is
// stopped everywhere and b is not.
func Came(step int) record.Status {
	w := At(step)
	w.StepName = []string{"install", "a/stop", "a/update", "b/update", "c/update"}[step]
	return w
}

// Finished is the record of a worker that has done all steps.
func Finished() record.Status {
	s := At(9)
	s.Finished = true
	return s
}

// Failed is the record of a worker whose step has failed in that attempt.
func Failed(attempt int) record.Status {
	s := At(2)
	s.Error, s.Message, s.Attempt = true, "broken", attempt
	return s
}
