// Package updatertest has the common parts of the tests of the updater's leader and of its workers: the
// records of one update, stores, and a fake server.
package updatertest

import (
	"time"

	"bijou/updater/record"
)

// T0 returns the time when the update of these records began.
func T0() time.Time { return time.Date(2018, 11, 7, 12, 0, 0, 0, time.UTC) }

// Request returns an update of the servers 1, 2 and 10.
func Request(change func(*record.Request)) *record.Request {
	r := record.Request{Version: "1.1", Servers: []int{1, 2, 10}, ID: 4, Attempt: 1, StartedAt: T0(), AttemptAt: T0()}
	if change != nil {
		change(&r)
	}
	return &r
}

// Ended returns that update, finished or stopped.
func Ended(stop bool) *record.Request {
	return Request(func(r *record.Request) {
		at := T0()
		r.Stop, r.EndedAt, r.Why = stop, &at, map[bool]string{true: "server 2, step cke/stop: broken"}[stop]
	})
}

// Opened returns the update's gate, which is open up to the step.
func Opened(step int) record.Gate {
	return record.Gate{Request: 4, StartedAt: T0(), Attempt: 1, Step: step, At: T0()}
}

// At returns the record of one of the update's workers.
func At(step int) record.Status {
	return record.Status{Version: "1.1", Request: 4, Attempt: 1, Step: step, StepName: "step"}
}

// Came returns the record of a worker that has reached a step of a plan in which component a is stopped
// everywhere and the others are not.
func Came(step int) record.Status {
	w := At(step)
	w.StepName = []string{"install", "a/stop", "a/update", "b/update", "c/update"}[step]
	return w
}

// Finished returns the record of a worker that has finished all steps.
func Finished() record.Status {
	s := At(9)
	s.Finished = true
	return s
}

// Failed returns the record of a worker whose step failed in the given attempt.
func Failed(attempt int) record.Status {
	s := At(2)
	s.Error, s.Message, s.Attempt = true, "broken", attempt
	return s
}
