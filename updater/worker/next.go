package worker

import (
	"fmt"
	"slices"
	"time"

	"bijou/updater/record"
	"bijou/updater/release"
)

// Job names what a Task does.
type Job string

// The jobs of a worker.
const (
	Idle    Job = "idle"    // until something changes, or the time has come
	Cancel  Job = "cancel"  // end what it is doing at the next safe point
	Write   Job = "write"   // commit its record; that is how it comes to a step
	Look    Job = "look"    // look at other workers' records: a few, or all, or none if too soon
	Install Job = "install" // install the request's version, and hand over to it
	RunStep Job = "run"     // run the step
)

// Task is the one thing that a worker does next. Install and RunStep are written to the Journal
// before and after. Write is conditional on the snapshot's request being current and not stopped.
type Task struct {
	Job     Job
	Until   time.Time // Idle only
	Why     string
	Step    release.Step  // RunStep
	Version string        // Install
	Journal Journal       // Install, RunStep: what to write on the disk first
	Status  record.Status // Write
}

// How long a worker waits for the gate before it reads the others' records, and how
// seldom it does so in a long wait.
const (
	firstLookDelay  = 2 * time.Second
	maxLookInterval = 30 * time.Second
	// lookDelayPerCommit is that time, in what the worker's own commit of its record took.
	lookDelayPerCommit = 16
)

// NextTask decides the worker's next task. It is pure: all that it knows is in the snapshot.
func NextTask(s Snapshot, now time.Time) Task {
	switch {
	case s.Busy && (!s.takesPart() || !s.isOwnJournal(s.Journal) || s.Current.Attempt != s.Journal.Attempt):
		return Task{Job: Cancel, Why: "the update was stopped"}
	case s.Busy:
		return Task{Job: Idle, Why: s.Journal.Name + " runs"}
	}

	if !s.takesPart() {
		return Task{Job: Idle, Why: "there is nothing to do"}
	}
	if s.Status == nil || !s.Status.IsFor(*s.Current) || s.Status.Attempt != s.Current.Attempt {
		return s.joinRequest(now)
	}

	switch {
	case s.Status.Finished:
		return Task{Job: Idle, Why: "all steps are done"}
	case s.Status.Error:
		return Task{Job: Idle, Why: "failed: " + s.Status.Message}
	case !s.isInstalled():
		return s.nextInstall(now)
	case s.planDiffers():
		return s.failTask(now, fmt.Sprintf("the digest of this server's plan is %s, and that of release %s is %s: its package brings another %s than the release says",
			record.ShortDigest(s.Digests.Plan), s.Current.Version, record.ShortDigest(s.Current.Plan), release.ManifestFile), nil)
	case s.Status.Step == 0:
		return s.writeTask(now, s.recordAt(1))
	}

	return s.nextStep(now)
}

func (s Snapshot) takesPart() bool {
	r := s.Current
	return r != nil && !r.Stop && !r.Ended() && slices.Contains(r.Servers, s.LRN)
}

// isInstalled reports whether this worker has the request's version, and was installed from its bytes. If
// those are unknown, its plan decides.
func (s Snapshot) isInstalled() bool {
	if s.Digests.Sums == "" && s.planDiffers() && !(s.isJournaled(0) && s.Journal.Phase == Done) {
		return false
	}
	return release.Same(s.Own, s.Current.Version) && !record.Differ(s.Digests.Sums, s.Current.Sums)
}

func (s Snapshot) planDiffers() bool { return record.Differ(s.Digests.Plan, s.Current.Plan) }

// joinRequest returns the worker's first record of this attempt. The worker continues where its former
// record or its journal ends.
func (s Snapshot) joinRequest(now time.Time) Task {
	w := s.recordAt(0)
	if s.isInstalled() && !s.planDiffers() {
		w = s.recordAt(1)
	}
	if old := s.Status; old != nil && old.IsFor(*s.Current) && old.Step > w.Step {
		w = s.recordAt(old.Step)
		w.Finished = old.Finished
	}
	if j := s.Journal; s.isOwnJournal(j) && j.Step > w.Step {
		w = s.recordAt(j.Step)
	}

	return s.writeTask(now, w)
}

func (s Snapshot) isOwnJournal(j Journal) bool {
	return j.Request == s.Current.ID && j.Started.Equal(s.Current.StartedAt)
}

// recordAt returns this server's status record at a step of the update.
func (s Snapshot) recordAt(step int) record.Status {
	w := record.Status{
		Version:  s.Current.Version,
		Digests:  s.Digests,
		Request:  s.Current.ID,
		Attempt:  s.Current.Attempt,
		Step:     step,
		StepName: record.InstallStep,
	}

	if step > 0 && step <= len(s.Steps) {
		w.StepName = s.Steps[step-1].Name
		w.Steps = len(s.Steps)
	}
	return w
}

// HandOverRecord returns the record that the worker writes once it has installed the request's
// version; nil if nobody waits for that.
func (s Snapshot) HandOverRecord() *record.Status {
	if s.Current == nil || s.Status == nil || !s.Status.IsFor(*s.Current) ||
		s.Status.Attempt != s.Current.Attempt {
		return nil
	}

	w := s.recordAt(0)
	w.StepName = record.HandOverStep
	return &w
}

func (s Snapshot) writeTask(now time.Time, w record.Status) Task {
	w.At = now
	return Task{Job: Write, Status: w, Why: w.StepName}
}

// failTask records why the worker cannot go on; waitedFor are the servers at fault, nil
// if it is itself.
func (s Snapshot) failTask(now time.Time, message string, waitedFor []int) Task {
	w := *s.Status
	w.Error = true
	w.Message = message
	w.WaitedFor = waitedFor
	return s.writeTask(now, w)
}

// nextInstall installs the request's version. The worker ends after that, and its successor takes over. If
// the worker still runs after record.HandOverTimeout, it reports that no successor has come.
func (s Snapshot) nextInstall(now time.Time) Task {
	j := s.Journal
	switch {
	case !s.isJournaled(0) || j.Phase == Running:
		return Task{
			Job:     Install,
			Version: s.Current.Version,
			Journal: s.newJournal(now, 0, "install"),
			Why:     "install " + s.Current.Version,
		}
	case j.Phase == Failed:
		return s.failTask(now, j.Message, j.WaitedFor)
	case !now.Before(j.At.Add(record.HandOverTimeout)):
		return s.failTask(now,
			fmt.Sprintf("%s was installed, but %s still runs a minute later", s.Current.Version, s.Own), nil)
	}

	return Task{
		Job:   Idle,
		Until: j.At.Add(record.HandOverTimeout),
		Why:   "waiting for " + s.Current.Version + " to take over",
	}
}

// nextStep runs the worker's step once all other servers have come to it. Then it goes on to the next step.
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

// advance returns the task that records the next step, or the end of this server's part.
func (s Snapshot) advance(now time.Time) Task {
	number := s.Status.Step
	if number < len(s.Steps) {
		return s.writeTask(now, s.recordAt(number+1))
	}

	w := s.recordAt(number)
	w.Finished = true
	return s.writeTask(now, w)
}

// isJournaled reports whether the journal is about that step of this request. A failure counts only in its
// own attempt, since a retry runs the step again. So does an installation: that this worker still runs
// shows that it had no effect.
func (s Snapshot) isJournaled(step int) bool {
	j := s.Journal
	if !s.isOwnJournal(j) || j.Step != step || j.Phase == "" {
		return false
	}
	passing := j.Phase == Failed || j.Phase == Done && step == 0
	return !passing || j.Attempt == s.Current.Attempt
}

// newJournal returns the journal of a task that begins.
func (s Snapshot) newJournal(now time.Time, step int, name string) Journal {
	return Journal{
		Request: s.Current.ID,
		Started: s.Current.StartedAt,
		Attempt: s.Current.Attempt,
		Step:    step,
		Name:    name,
		Phase:   Running,
		At:      now,
	}
}

// lateServers returns the servers that have not come to the worker's step yet. known is false if their
// records were not read.
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

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// nextLook returns when a waiting worker reads the others' records next. It looks ever more seldom, at a
// different time than other workers, and later if commits are slow, since the gate then is, too.
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
	return w.IsFor(*s.Current) && !record.Differ(w.Plan, s.Digests.Plan) &&
		(w.Finished || s.stepNumber(w.StepName, w.Step) >= s.Status.Step)
}
