package decide

import (
	"fmt"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// This file decides when the leader opens the gate. [record.Gate] is its record. updater/worker/gate.go waits for it,
// and also lets a worker go on without a leader, once the records of all servers show that they have reached the step.

// isGateDue reports whether all servers have reached a step whose gate is not open. slowest is the record of
// the server that is furthest behind.
func (s Snapshot) isGateDue(slowest record.Status) bool {
	return slowest.Step > s.Gate.OpenStep(*s.Current)
}

// openGate returns the action that opens the gate of the slowest server's step, which all servers have reached.
// slowest is the record of that server.
func (s Snapshot) openGate(now time.Time, slowest record.Status) Action {
	r := s.Current
	g := record.Gate{
		Request:   r.ID,
		StartedAt: r.StartedAt,
		Attempt:   r.Attempt,
		Step:      slowest.Step,
		StepName:  slowest.StepName,
		Plan:      slowest.Plan,
		At:        now,
		Progress:  r.Progress(s.Workers),
	}

	return Action{
		Verb:    Open,
		Why:     fmt.Sprintf("all servers have reached step %d", slowest.Step),
		Changes: []updater.Change{updater.Put(keys.Gate, g)},
	}
}

// slowestRecord returns the record of the server that is furthest behind. Its Step is 0 if a server has no
// record yet, and -1 if all servers have finished.
func (s Snapshot) slowestRecord() record.Status {
	slowest := record.Status{Step: -1}
	for _, lrn := range s.Current.Servers {
		w, ok := s.workerRecord(lrn)
		switch {
		case !ok:
			return record.Status{}
		case w.Finished:
			// This server has no step left.
		case slowest.Step < 0 || w.Step < slowest.Step:
			slowest = w
		}
	}

	return slowest
}
