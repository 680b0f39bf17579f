package updater

import (
	"fmt"
	"time"

	"bijou/updater/record"
)

// install brings the request's version to this server. Whoever installs ends and
// lets the new version take its seat; if that does not come, somebody must know.
func (s Seat) install(now time.Time) Task {
	j := s.Journal
	switch {
	case !s.journaled(0) || j.Phase == Running:
		return Task{Job: Install, Version: s.Current.Version, Journal: s.journal(now, 0, "install"), Why: "install " + s.Current.Version}
	case j.Phase == Failed:
		return s.fail(now, j.Message, j.WaitedFor)
	case !now.Before(j.At.Add(handOver)):
		return s.fail(now, fmt.Sprintf("%s was installed, but %s still runs a minute later", s.Current.Version, s.Own), nil)
	}
	return Task{Job: Idle, Until: j.At.Add(handOver), Why: "waiting for " + s.Current.Version + " to take over"}
}

// step runs the step that the worker has come to, once all others have come to
// it, too, and goes on to the next.
func (s Seat) step(now time.Time) Task {
	number := s.Status.Step
	if number > len(s.Steps) {
		return s.fail(now, fmt.Sprintf("the manifest has no step %d", number), nil)
	}
	if s.journaled(number) && s.Journal.Phase == Done {
		return s.advance(now)
	}
	if s.journaled(number) && s.Journal.Phase == Failed {
		return s.fail(now, s.Journal.Message, s.Journal.WaitedFor)
	}
	if s.passes(s.Steps[number-1]) {
		return s.advance(now)
	}
	if !s.opened() {
		if late, known := s.late(); !known || len(late) > 0 {
			return s.await(now, late)
		}
	}
	step := s.Steps[number-1]
	return Task{Job: Run, Step: step, Journal: s.journal(now, number, step.Name), Why: step.Name}
}

// advance comes to the next step, or to the end behind the last one.
func (s Seat) advance(now time.Time) Task {
	number := s.Status.Step
	if number < len(s.Steps) {
		return s.write(now, s.at(number+1))
	}
	w := s.at(number)
	w.Finished = true
	return s.write(now, w)
}

// journaled tells if the journal is about that step of this request. A failure
// counts for the attempt it was made in only: a retry runs the step again. So does
// an installation: that the worker is still here shows that it was of no use.
func (s Seat) journaled(step int) bool {
	j := s.Journal
	if !s.ours(j) || j.Step != step || j.Phase == "" {
		return false
	}
	passing := j.Phase == Failed || j.Phase == Done && step == 0
	return !passing || j.Attempt == s.Current.Attempt
}

// journal is what to write on the disk before something is begun.
func (s Seat) journal(now time.Time, step int, name string) Journal {
	return Journal{Request: s.Current.ID, Started: s.Current.StartedAt, Attempt: s.Current.Attempt, Step: step, Name: name, Phase: Running, At: now}
}

// late are the servers that have not come to the worker's step; known is false
// if their records were not read.
func (s Seat) late() (late []int, known bool) {
	if s.All == nil {
		return nil, false
	}
	for _, lrn := range s.Current.Servers {
		if w, ok := s.All[lrn]; !ok || !s.reached(w) {
			late = append(late, lrn)
		}
	}
	return late, true
}

// await waits at the barrier: for the gate, and now and then it looks for
// itself, so that no barrier waits for a leader. Who waits for too long in which
// nobody has moved says for whom, so that it looks once more before. While the
// store was away nobody could write how far he is, which counts for nothing.
func (s Seat) await(now time.Time, late []int) Task {
	since := latest(s.Status.At, s.Back)
	deadline := latest(since, s.MovedAt).Add(s.Timeout)
	expired := !now.Before(deadline)
	if expired && len(late) > 0 {
		return s.fail(now, fmt.Sprintf("waited %s for server %s to come to step %s", s.Timeout, record.ListServers(late), s.Status.StepName), late)
	}
	look := s.lookAt(since)
	if expired || s.All == nil && !now.Before(look) {
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

// lookAt is when a worker that waits looks next for itself: ever more seldom, each at
// another time, and later where commits take long, since the gate does, too.
func (s Seat) lookAt(since time.Time) time.Time {
	first := max(lookAfter, lookPerCommit*s.CommitTook)
	first += time.Duration(s.Jitter * float64(first))
	if s.LookedAt.Before(since) {
		return since.Add(first)
	}
	return s.LookedAt.Add(max(first, min(lookAtMost, s.LookedAt.Sub(since))))
}
