package worker

import (
	"fmt"
	"slices"
	"time"

	"bijou/updater/record"
	"bijou/updater/release"
)

// nextInstall installs the request's version. The worker ends after that, so that its successor
// takes over; if it still runs after the time-out it reports that none has come.
func (s Snapshot) nextInstall(now time.Time) Task {
	j := s.Journal
	switch {
	case !s.isJournaled(0) || j.Phase == Running:
		return Task{Job: Install, Version: s.Current.Version, Journal: s.newJournal(now, 0, "install"), Why: "install " + s.Current.Version}
	case j.Phase == Failed:
		return s.failTask(now, j.Message, j.WaitedFor)
	case !now.Before(j.At.Add(record.HandOverTimeout)):
		return s.failTask(now, fmt.Sprintf("%s was installed, but %s still runs a minute later", s.Current.Version, s.Own), nil)
	}
	return Task{Job: Idle, Until: j.At.Add(record.HandOverTimeout), Why: "waiting for " + s.Current.Version + " to take over"}
}

// nextStep runs the worker's step once all others have come to it, too, and then goes on
// to the next.
func (s Snapshot) nextStep(now time.Time) Task {
	number := s.Status.Step
	if number > len(s.Steps) {
		return s.failTask(now, fmt.Sprintf("the manifest has no step %d", number), nil)
	}
	step := s.Steps[number-1]
	if s.isJournaled(number) && s.Journal.Phase == Failed {
		return s.failTask(now, s.Journal.Message, s.Journal.WaitedFor)
	}
	if s.isJournaled(number) && s.Journal.Phase == Done || s.skipsStep(step) {
		return s.advance(now)
	}
	if !s.isGateOpen() {
		if late, known := s.lateServers(); !known || len(late) > 0 {
			return s.nextAtBarrier(now, late)
		}
	}
	return Task{Job: RunStep, Step: step, Journal: s.newJournal(now, number, step.Name), Why: step.Name}
}

func (s Snapshot) advance(now time.Time) Task {
	number := s.Status.Step
	if number < len(s.Steps) {
		return s.writeTask(now, s.recordAt(number+1))
	}
	w := s.recordAt(number)
	w.Finished = true
	return s.writeTask(now, w)
}

// isJournaled reports whether the journal is about that step of this request. A failure
// counts only in the attempt in which it was made: a retry runs the step again. So does
// an installation: that this worker still runs shows that it did not help.
func (s Snapshot) isJournaled(step int) bool {
	j := s.Journal
	if !s.isOwnJournal(j) || j.Step != step || j.Phase == "" {
		return false
	}
	passing := j.Phase == Failed || j.Phase == Done && step == 0
	return !passing || j.Attempt == s.Current.Attempt
}

func (s Snapshot) newJournal(now time.Time, step int, name string) Journal {
	return Journal{Request: s.Current.ID, Started: s.Current.StartedAt, Attempt: s.Current.Attempt, Step: step, Name: name, Phase: Running, At: now}
}

// lateServers returns the servers that have not come to the worker's step; known is false
// if their records were not read.
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

// nextAtBarrier waits for the gate, and now and then reads the others' records itself, so that no
// barrier depends on a leader. Before it gives up, because nobody has moved for the time-out, it
// reads them once more, to report for whom it has waited. While the store was away nobody could
// write how far they are, so that this time does not count. See docs/reference/stall-detection.md.
func (s Snapshot) nextAtBarrier(now time.Time, late []int) Task {
	since := latest(s.Status.At, s.StoreBackAt)
	deadline := latest(since, s.MovedAt).Add(s.Timeout)
	expired := !now.Before(deadline)
	if expired && len(late) > 0 {
		return s.failTask(now, fmt.Sprintf("waited %s for server %s to come to step %s", s.Timeout, record.ListServers(late), s.Status.StepName), late)
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

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// nextLook is when a waiting worker reads the others' records next: ever more seldom, each worker
// at another time, and later where commits take long, since the gate does, too.
func (s Snapshot) nextLook(since time.Time) time.Time {
	first := max(firstLookDelay, lookDelayPerCommit*s.CommitTook)
	first += time.Duration(s.Jitter * float64(first))
	if s.LookedAt.Before(since) {
		return since.Add(first)
	}
	return s.LookedAt.Add(max(first, min(maxLookInterval, s.LookedAt.Sub(since))))
}

func (s Snapshot) skipsStep(step release.Step) bool {
	r := s.Current
	return r.Repair && len(r.Components) > 0 && !slices.Contains(r.Components, step.Component.Name)
}

// A barrier compares steps by their names and plans by their digests: a number alone is
// another step in another plan.

// stepNumber returns the number that the step of that name has in the worker's own plan; 0 if
// that has no such step. Former versions record numbers only.
func (s Snapshot) stepNumber(name string, recorded int) int {
	if name == "" {
		return recorded
	}
	return 1 + slices.IndexFunc(s.Steps, func(step release.Step) bool { return step.Name == name })
}

func (s Snapshot) hasReached(w record.Status) bool {
	return w.IsFor(*s.Current) && !record.Differ(w.Plan, s.Digests.Plan) && (w.Finished || s.stepNumber(w.StepName, w.Step) >= s.Status.Step)
}

func (s Snapshot) isGateOpen() bool {
	g := s.Gate
	return g.OpenStep(*s.Current) > 0 && !record.Differ(g.Plan, s.Digests.Plan) && s.stepNumber(g.StepName, g.Step) >= s.Status.Step
}
