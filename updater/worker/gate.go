package worker

import (
	"fmt"
	"time"

	"bijou/updater/record"
)

// nextAtBarrier waits for the gate, and now and then reads the others' records itself, so that no
// barrier depends on a leader. Before it gives up, because nobody has moved for the time-out, it
// reads them once more, to report for whom it has waited. While the store was away nobody could
// write how far they are, so that this time does not count. See docs/dev/stall-detection.md.
func (s Snapshot) nextAtBarrier(now time.Time, late []int) Task {
	since := latest(s.Status.At, s.StoreBackAt)
	deadline := latest(since, s.MovedAt).Add(s.Timeout)
	expired := !now.Before(deadline)
	if expired && len(late) > 0 {
		return s.failTask(
			now,
			fmt.Sprintf("waited %s for server %s to come to step %s",
				s.Timeout, record.ListServers(late), s.Status.StepName),
			late,
		)
	}

	look := s.nextLook(since)
	if expired || s.Workers == nil && !now.Before(look) {
		return Task{Job: Look, Why: "no gate was opened"}
	}

	if deadline.Before(look) {
		look = deadline
	}
	return Task{Job: Idle, Until: look, Why: "waiting for the others at step " + s.Status.StepName}
}

// isGateOpen reports whether the leader has opened the gate of the step at which this server waits.
func (s Snapshot) isGateOpen() bool {
	g := s.Gate
	return g.OpenStep(*s.Current) > 0 && !record.Differ(g.Plan, s.Digests.Plan) &&
		s.stepNumber(g.StepName, g.Step) >= s.Status.Step
}
