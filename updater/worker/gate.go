package worker

import (
	"fmt"
	"slices"
	"time"

	"bijou/updater/record"
	"bijou/updater/release"
)

const (
	// firstLookDelay is the minimum time that a worker waits for the gate before it reads other workers'
	// records.
	firstLookDelay = 2 * time.Second
	// maxLookInterval limits the time between such reads in a long wait.
	maxLookInterval = 30 * time.Second
	// lookDelayPerCommit makes the wait before the first such read longer if commits are slow: it lasts at
	// least this many times as long as the worker's own last commits took.
	lookDelayPerCommit = 16
)

// isBarrierOpen reports whether this server can run its step: the leader has opened the gate, or the records
// of all servers show that they have reached the step. If this server must wait, late lists the servers that
// are known to be behind.
func (s Snapshot) isBarrierOpen() (open bool, late []int) {
	if s.isGateOpen() {
		return true, nil
	}
	late, known := s.lateServers()
	return known && len(late) == 0, late
}

// nextAtBarrier returns the next task of a worker that waits for the gate of its step. At intervals the
// worker reads the other workers' records, so that it does not depend on a leader. If no server has made
// progress for the timeout, the worker reads all records once more. If servers are then late, the step fails,
// and they are at fault. late are the servers that are known to be behind. The time of a store outage does not
// count, since servers could not record their progress. See docs/dev/stall-detection.md.
func (s Snapshot) nextAtBarrier(now time.Time, late []int) Task {
	// Status.At is when this worker reached the step in this attempt.
	since := latest(s.Status.At, s.StoreBackAt)
	deadline := latest(since, s.MovedAt).Add(s.Timeout)
	expired := !now.Before(deadline)
	if expired && len(late) > 0 {
		return s.failTask(
			now,
			fmt.Sprintf("waited %s for server %s to reach step %s",
				s.Timeout, record.ListServers(late), s.Status.StepName),
			late,
		)
	}

	lookAt := s.nextLook(since)
	// Workers is set only in the decision that follows a look.
	isLookDue := s.Workers == nil && !now.Before(lookAt)
	// After the timeout, only a look can show whether servers are late or the gate was just not opened.
	if expired || isLookDue {
		return Task{Job: Look, Why: "the leader has not opened the gate of this step"}
	}

	until := lookAt
	if deadline.Before(until) {
		until = deadline
	}
	return Task{Job: Idle, Until: until, Why: "waiting for the others at step " + s.Status.StepName}
}

// isGateOpen reports whether the leader has opened the gate of the step at which this server waits.
func (s Snapshot) isGateOpen() bool {
	g := s.Gate
	isOfSamePlan := g.OpenStep(*s.Current) > 0 && !record.Differ(g.Plan, s.Digests.Plan)
	return isOfSamePlan && s.stepNumber(g.StepName, g.Step) >= s.Status.Step
}

// nextLook returns when a worker that has waited since the given time next reads the other workers' records.
// The interval grows in a long wait, differs between workers, and is longer if commits are slow, since the gate
// then also opens later.
func (s Snapshot) nextLook(since time.Time) time.Time {
	firstDelay := max(firstLookDelay, lookDelayPerCommit*s.CommitTook)
	firstDelay += time.Duration(s.Jitter * float64(firstDelay))
	hasLooked := !s.LookedAt.Before(since) // in this wait
	if !hasLooked {
		return since.Add(firstDelay)
	}

	// The next interval is as long as the whole wait until the last look, within limits.
	waited := s.LookedAt.Sub(since)
	return s.LookedAt.Add(max(firstDelay, min(maxLookInterval, waited)))
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// lateServers returns the servers that have not reached the worker's step. known is false if their records
// were not read.
func (s Snapshot) lateServers() (late []int, known bool) {
	if s.Workers == nil {
		return nil, false
	}

	for _, lrn := range s.Current.Servers {
		if w, ok := s.Workers[lrn]; !ok || !s.hasReached(w) {
			late = append(late, lrn)
		}
	}

	return late, true
}

// Barriers compare steps by name and plans by digest, since the same number can mean a different step in
// another plan.

// stepNumber returns the number of the named step in the worker's own plan, or 0 if the plan has no such step.
// If name is "", it returns recorded, since earlier versions recorded only numbers.
func (s Snapshot) stepNumber(name string, recorded int) int {
	if name == "" {
		return recorded
	}
	return 1 + slices.IndexFunc(s.Steps, func(step release.Step) bool { return step.Name == name })
}

// hasReached reports whether the server with record w has reached this worker's step.
func (s Snapshot) hasReached(w record.Status) bool {
	isOfSamePlan := w.IsFor(*s.Current) && !record.Differ(w.Plan, s.Digests.Plan)
	return isOfSamePlan && (w.Finished || s.stepNumber(w.StepName, w.Step) >= s.Status.Step)
}
