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

// NextTask decides what a worker does next.
func NextTask(s Snapshot, now time.Time) Task {
	if s.Busy {
		return s.nextBusy()
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

// isInstalled reports whether this worker is of the request's version, and was installed
// from its bytes. Where it is not known what it was installed from, its plan decides.
func (s Snapshot) isInstalled() bool {
	if s.Digests.Sums == "" && s.planDiffers() && !(s.isJournaled(0) && s.Journal.Phase == Done) {
		return false
	}
	return release.Same(s.Own, s.Current.Version) && !record.Differ(s.Digests.Sums, s.Current.Sums)
}

func (s Snapshot) planDiffers() bool { return record.Differ(s.Digests.Plan, s.Current.Plan) }

func (s Snapshot) nextBusy() Task {
	if !s.takesPart() || !s.isOwnJournal(s.Journal) || s.Current.Attempt != s.Journal.Attempt {
		return Task{Job: Cancel, Why: "the update was stopped"}
	}
	return Task{Job: Idle, Why: s.Journal.Name + " runs"}
}

// joinRequest makes the worker's record of this attempt. It goes on where its former
// record or its journal shows that it has been.
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

func (s Snapshot) recordAt(step int) record.Status {
	w := record.Status{Version: s.Current.Version, Digests: s.Digests, Request: s.Current.ID, Attempt: s.Current.Attempt, Step: step, StepName: record.InstallStep}
	if step > 0 && step <= len(s.Steps) {
		w.StepName, w.Steps = s.Steps[step-1].Name, len(s.Steps)
	}
	return w
}

// HandOverRecord returns the record that the worker writes once it has installed the request's
// version; nil if nobody waits for that.
func (s Snapshot) HandOverRecord() *record.Status {
	if s.Current == nil || s.Status == nil || !s.Status.IsFor(*s.Current) || s.Status.Attempt != s.Current.Attempt {
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
	w.Error, w.Message, w.WaitedFor = true, message, waitedFor
	return s.writeTask(now, w)
}
