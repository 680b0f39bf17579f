package worker

import (
	"fmt"
	"slices"
	"time"

	"bijou/updater/record"
	"bijou/updater/release"
)

// Job is the kind of a Task.
type Job string

// The jobs of a worker.
const (
	Idle    Job = "idle"    // wait until something changes, or until a given time
	Cancel  Job = "cancel"  // end the running task at the next safe point
	Write   Job = "write"   // commit the worker's record, for example to enter a step
	Look    Job = "look"    // read records of other workers, a few or all
	Install Job = "install" // install the request's version, and hand over to it
	RunStep Job = "run"     // run the step
)

// Task is a worker's next action. The Journal is written before and after an Install or RunStep. A Write is
// conditional on the snapshot's request still being current and not stopped.
type Task struct {
	Job     Job
	Until   time.Time // Idle only
	Why     string
	Step    release.Step  // RunStep
	Version string        // Install
	Journal Journal       // Install, RunStep: written to the disk first
	Status  record.Status // Write
}

// NextTask decides on the worker's next task. It is a pure function of the snapshot and the time.
func NextTask(s Snapshot, now time.Time) Task {
	switch {
	case s.Busy && !s.isJournalCurrent():
		return Task{Job: Cancel, Why: "the update was stopped or replaced"}
	case s.Busy:
		return Task{Job: Idle, Why: s.Journal.Name + " runs"}
	}

	if !s.takesPart() {
		return Task{Job: Idle, Why: "there is nothing to do"}
	}
	if !s.hasJoined() {
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
		return s.failTask(now, fmt.Sprintf(
			"this server's plan has digest %s, but release %s has %s: the package contains a different %s",
			record.ShortDigest(s.Digests.Plan), s.Current.Version, record.ShortDigest(s.Current.Plan), release.ManifestFile,
		), nil)
	case s.Status.Step == 0:
		return s.writeTask(now, s.recordAt(1))
	}

	return s.nextStep(now)
}

// isJournalCurrent reports whether the journal's task belongs to the current attempt of the request. It returns
// false if the request was stopped or replaced, or this server no longer takes part.
func (s Snapshot) isJournalCurrent() bool {
	return s.takesPart() && s.isOwnJournal(s.Journal) && s.Current.Attempt == s.Journal.Attempt
}

// takesPart reports whether an update is running, and this server is one of its servers.
func (s Snapshot) takesPart() bool {
	r := s.Current
	return r != nil && !r.Stop && !r.Ended() && slices.Contains(r.Servers, s.LRN)
}

// hasJoined reports whether this worker has written a record in the current attempt at the request.
func (s Snapshot) hasJoined() bool {
	return s.Status != nil && s.Status.IsFor(*s.Current) && s.Status.Attempt == s.Current.Attempt
}

// isInstalled reports whether this worker has the request's version, and its files are not known to differ from
// the request's. If the digest of its files is unknown, a different plan shows that the files are different,
// unless an installation in this attempt is done.
func (s Snapshot) isInstalled() bool {
	// If the plan still differs after the installation, another installation cannot help.
	wasJustInstalled := s.isJournaled(0) && s.Journal.Phase == Done
	if s.Digests.Sums == "" && s.planDiffers() && !wasJustInstalled {
		return false
	}
	return release.Same(s.Own, s.Current.Version) && !record.Differ(s.Digests.Sums, s.Current.Sums)
}

// planDiffers reports whether this worker's plan is known to differ from the plan of the request's release.
func (s Snapshot) planDiffers() bool { return record.Differ(s.Digests.Plan, s.Current.Plan) }

// joinRequest returns the task that writes the worker's first record of this attempt. The worker continues
// where its previous record or its journal ends.
func (s Snapshot) joinRequest(now time.Time) Task {
	// A worker that must install the request's version, or has a different plan, cannot begin step 1 yet.
	w := s.recordAt(0)
	if s.isInstalled() && !s.planDiffers() {
		w = s.recordAt(1)
	}

	// The previous record is from an earlier attempt at the same request.
	if old := s.Status; old != nil && old.IsFor(*s.Current) && old.Step > w.Step {
		w = s.recordAt(old.Step)
		w.Finished = old.Finished
	}

	// The journal can be ahead of the record if the record could not be written.
	if j := s.Journal; s.isOwnJournal(j) && j.Step > w.Step {
		w = s.recordAt(j.Step)
	}

	return s.writeTask(now, w)
}

// isOwnJournal reports whether the journal belongs to the current request, in any attempt.
func (s Snapshot) isOwnJournal(j Journal) bool {
	return j.Request == s.Current.ID && j.Started.Equal(s.Current.StartedAt)
}

// recordAt returns this server's status record at a step of the update, or before the first step if step is 0.
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

// HandOverRecord returns the record that the worker writes once it has installed the request's version. It
// returns nil if there is no request, or if the worker has no record in the current attempt.
func (s Snapshot) HandOverRecord() *record.Status {
	if s.Current == nil || !s.hasJoined() {
		return nil
	}

	// Before the first step, only the step's name tells the handover from the installation.
	w := s.recordAt(0)
	w.StepName = record.HandOverStep
	return &w
}

// writeTask returns the task that commits the record with the time now.
func (s Snapshot) writeTask(now time.Time, w record.Status) Task {
	w.At = now
	return Task{Job: Write, Status: w, Why: w.StepName}
}

// failTask returns the task that records why the worker cannot continue. waitedFor are the servers at fault,
// or nil if this server is at fault.
func (s Snapshot) failTask(now time.Time, message string, waitedFor []int) Task {
	w := *s.Status
	w.Error = true
	w.Message = message
	w.WaitedFor = waitedFor
	return s.writeTask(now, w)
}

// nextInstall returns the task that installs the request's version. After the installation, the worker
// exits and its successor takes over. If the worker is still running after record.HandOverTimeout, it
// reports that no successor has started.
func (s Snapshot) nextInstall(now time.Time) Task {
	// Step 0 is the installation. No task runs now, so an installation in the phase Running was interrupted.
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

// nextStep returns the task for the worker's current step. The worker waits until all other servers have
// reached the step, runs the step, and then continues with the next step. It skips a step that the request
// does not include. If the step has failed, the worker reports the failure.
func (s Snapshot) nextStep(now time.Time) Task {
	number := s.Status.Step
	if number > len(s.Steps) {
		return s.failTask(now, fmt.Sprintf("the manifest has no step %d", number), nil)
	}

	step := s.Steps[number-1]
	isJournaled := s.isJournaled(number)
	switch {
	case isJournaled && s.Journal.Phase == Failed:
		return s.failTask(now, s.Journal.Message, s.Journal.WaitedFor)
	case isJournaled && s.Journal.Phase == Done, s.skipsStep(step):
		return s.advance(now)
	}

	if open, late := s.isBarrierOpen(); !open {
		return s.nextAtBarrier(now, late)
	}

	// A step that was interrupted runs again.
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

// isJournaled reports whether the journal is about the given step of this request, or about the installation
// if step is 0. A failure counts only in its own attempt, since a retry runs the step again. A completed
// installation also counts only in its own attempt: if this worker is still running, the installation had no
// effect.
func (s Snapshot) isJournaled(step int) bool {
	j := s.Journal
	if !s.isOwnJournal(j) || j.Step != step || j.Phase == "" {
		return false
	}

	isCompletedInstallation := step == 0 && j.Phase == Done
	if j.Phase == Failed || isCompletedInstallation {
		return j.Attempt == s.Current.Attempt
	}
	return true
}

// newJournal returns the journal of a task that is about to begin.
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

// skipsStep reports whether the request is a repair of some components, and the step is for a different
// component.
func (s Snapshot) skipsStep(step release.Step) bool {
	r := s.Current
	return r.Repair && len(r.Components) > 0 && !slices.Contains(r.Components, step.Component.Name)
}
