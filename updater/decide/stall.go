package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// StallGrace is how much longer than the workers' own timeout the leader waits, so that a worker can report the
// reason first.
const StallGrace = 30 * time.Second

// stallDeadline returns when the leader stops an update that makes no progress.
func (s Snapshot) stallDeadline() time.Time {
	return s.lastMoveAt().Add(s.Config.WorkerTimeout + StallGrace)
}

// A leader records the wait for its successor as a duration. The clocks of the two can differ by hours, and a
// deadline by the wrong clock would stop a healthy update. See docs/dev/stall-detection.md.

// lastMoveAt returns the time of the last progress, by this leader's steady clock. If this leader has seen the
// progress, or if no leader has recorded it, that is the time when it first saw the stage. Otherwise it is the
// recorded time, if that agrees with the recorded wait. If they disagree, only the wait is used.
func (s Snapshot) lastMoveAt() time.Time {
	moved := s.recordedGate().At
	if s.StageSince.IsZero() {
		return moved
	}
	if s.Witnessed || !s.isStageRecorded() {
		return s.StageSince
	}

	waited := s.StageSince.Sub(moved)
	if waited < s.WaitedBefore || waited > s.WaitedBefore+s.noteInterval()+StallGrace {
		waited = s.WaitedBefore
	}
	return s.StageSince.Add(-waited)
}

// recordedGate returns the gate that a leader has recorded in this attempt. If there is none yet, it
// returns a gate with the time when the attempt began.
func (s Snapshot) recordedGate() record.Gate {
	if s.Gate.IsAbout(*s.Current) {
		return s.Gate
	}
	return record.Gate{At: s.Current.AttemptAt}
}

// isStageRecorded reports whether no server has made progress since a leader wrote the gate, so that the
// wait in the gate is still valid.
func (s Snapshot) isStageRecorded() bool {
	return s.recordedGate().Progress == s.Current.Progress(s.Workers)
}

// noteInterval returns how often the leader records the time without progress.
func (s Snapshot) noteInterval() time.Duration { return min(s.Config.WorkerTimeout/4, time.Minute) }

func (s Snapshot) recordedWait() time.Duration {
	if !s.isStageRecorded() {
		return 0
	}
	return time.Duration(s.recordedGate().Waited) * time.Second
}

// owesNote reports whether the leader must record the current wait, since the next leader would otherwise
// assume a much shorter or longer one.
func (s Snapshot) owesNote(waited time.Duration) bool {
	recorded := s.recordedWait()
	switch {
	case s.StageSince.IsZero():
		return false
	case waited >= recorded+s.noteInterval():
		return true
	case s.Witnessed:
		// After an outage of the store, the wait is shorter than the recorded one.
		return waited < recorded
	}

	return !s.isStageRecorded()
}

// recordWait returns the action that records the time without progress for the next leader.
func (s Snapshot) recordWait(waited time.Duration) Action {
	return Action{
		Verb:    Note,
		Why:     fmt.Sprintf("update to %s runs", s.Current.Version),
		Changes: []updater.Change{updater.Put(keys.Gate, s.waitingGate(waited))},
	}
}

// waitingGate returns the gate's record with the time without progress.
func (s Snapshot) waitingGate(waited time.Duration) record.Gate {
	r := s.Current
	return record.Gate{
		Request:   r.ID,
		StartedAt: r.StartedAt,
		Attempt:   r.Attempt,
		Step:      s.Gate.OpenStep(*r),
		StepName:  s.Gate.StepName,
		Plan:      s.Gate.Plan,
		At:        s.lastMoveAt(),
		Progress:  r.Progress(s.Workers),
		Waited:    int(waited / time.Second),
		Slow:      s.recordedGate().Slow,
	}
}

// slowTimeout returns the time without progress after which an alert is sent.
func (s Snapshot) slowTimeout() time.Duration { return min(5*time.Minute, s.Config.WorkerTimeout/2) }

// slowDeadline returns when an alert about a slow update is due. It is zero if the alert was already sent
// at this step, or if nothing was observed yet.
func (s Snapshot) slowDeadline() time.Time {
	if s.StageSince.IsZero() || s.recordedGate().Slow {
		return time.Time{}
	}
	return s.lastMoveAt().Add(s.slowTimeout())
}

// reportSlow returns the action that writes an alert about an update without progress.
func (s Snapshot) reportSlow(now time.Time) Action {
	waited := now.Sub(s.lastMoveAt()).Truncate(time.Second)
	gate := s.waitingGate(waited)
	gate.Slow = true

	atFault, why := s.describeStall()
	message := fmt.Sprintf("update to %s is slow: no progress for %s; %s", s.Current.Version, waited, why)
	alert := s.newAlert(now, record.AlertSlow, withHint(message, diagnoseHint(atFault)))
	alert.ID = fmt.Sprintf("%s-%d", alert.ID, gate.Step)
	alert.Servers = record.Blame(atFault)

	return Action{
		Verb:    Slow,
		Why:     message,
		Changes: []updater.Change{updater.Put(keys.Gate, gate), updater.Put(keys.Alert(alert.ID), alert)},
	}
}

// Activity returns the activity that the server's worker reports. If it reports none, Activity returns the
// wait at a barrier that follows from the records. ok is false if the activity is unknown.
func (s Snapshot) Activity(lrn int) (a record.Activity, ok bool) {
	w, answered := s.workerRecord(lrn)
	if !answered || w.Finished {
		return a, false
	}
	a, ok = s.Activities[lrn]
	if ok && a.IsOf(w) {
		return a, true
	}

	a = record.Activity{Request: w.Request, Attempt: w.Attempt, Step: w.Step, Since: w.At}
	late := s.serversBehind(w.Step)

	switch {
	case w.HandsOver():
		a.Message = "has installed " + w.Version + " and waits for the worker of that version to start"
	case w.Step > 0 && len(late) > 0:
		who := "server " + record.ListServers(late)
		if len(late) > maxDescribed {
			who = fmt.Sprint(len(late), " servers")
		}
		a.Kind = record.WaitBarrier
		a.Servers = late
		a.Message = "waits for " + who + " to reach this step"
	}

	return a, a.Message != ""
}

// serversBehind returns the update's servers that have not reached the step.
func (s Snapshot) serversBehind(step int) (late []int) {
	for _, lrn := range s.Current.Servers {
		if w, ok := s.workerRecord(lrn); !ok || !w.Finished && w.Step < step {
			late = append(late, lrn)
		}
	}
	return late
}

// ServersAtFault returns the servers that block the late ones. If a server waits for other servers, only
// those are at fault.
func (s Snapshot) ServersAtFault(late []int) (atFault []int) {
	seen := map[int]bool{}
	var follow func(lrn int)

	follow = func(lrn int) {
		if seen[lrn] {
			return
		}

		seen[lrn] = true
		a, _ := s.Activity(lrn)
		_, absent := s.Absent[lrn]
		switch {
		case absent || a.Kind == "":
			atFault = append(atFault, lrn)
		case a.Kind == record.WaitQuorum:
			// The servers' members are at fault, even if their workers are waiting.
			atFault = append(atFault, a.Servers...)
		default:
			for _, other := range a.Servers {
				follow(other)
			}
		}
	}

	for _, lrn := range late {
		follow(lrn)
	}
	// The late servers may wait for nobody in particular, or for one another.
	if len(atFault) == 0 {
		return late
	}

	return record.SortServers(atFault)
}

// maxDescribed is the maximum number of servers that a message describes in detail. maxDescription limits the
// description of one server, in bytes.
const (
	maxDescribed   = 5
	maxDescription = 256
)

// describeServers describes the first servers for a message about a stall, and counts the others.
func (s Snapshot) describeServers(lrns []int) string {
	var words []string
	for i, lrn := range lrns {
		if i == maxDescribed {
			words = append(words, fmt.Sprintf("and %d more", len(lrns)-i))
			break
		}
		words = append(words, record.Shorten(s.describeServer(lrn), maxDescription))
	}

	return strings.Join(words, ", ")
}

// describeServer describes one server for a message about a stall.
func (s Snapshot) describeServer(lrn int) string {
	word := fmt.Sprintf("server %d has not answered", lrn)
	w, hasAnswered := s.workerRecord(lrn)
	if hasAnswered && w.Finished {
		word = fmt.Sprintf("server %d is done", lrn)
	} else if hasAnswered {
		word = fmt.Sprintf("server %d is at step %s", lrn, w.StepName)
		if a, _ := s.Activity(lrn); a.Message != "" {
			word += ": " + a.Text()
		}
	}

	if _, absent := s.Absent[lrn]; absent {
		word += " (no worker is alive there)"
	}
	return word
}

// describeStall returns the servers at fault for a stall, and a message about them and about the servers
// that wait for them.
func (s Snapshot) describeStall() (atFault []int, why string) {
	late := s.lateServers()
	atFault = s.ServersAtFault(late)
	why = s.describeServers(atFault)
	waiting := slices.DeleteFunc(slices.Clone(late), func(lrn int) bool { return slices.Contains(atFault, lrn) })
	if len(waiting) > 0 {
		why += "; " + s.describeServers(waiting)
	}
	return atFault, why
}

// failedServers returns the servers at fault for the failures of this attempt, except servers that only
// waited for others.
func (s Snapshot) failedServers(now time.Time) (atFault []int, why string) {
	var failed, waited []record.Reason
	var late []int

	for _, lrn := range s.Current.Servers {
		w, why := s.workerFailure(lrn, now)
		reason := record.Reason{Server: lrn, Where: "step " + w.StepName, Why: why}
		switch {
		case why == "":
			// This server has not failed.
		case len(w.WaitedFor) > 0:
			waited = append(waited, reason)
			late = append(late, w.WaitedFor...)
		default:
			failed = append(failed, reason)
			atFault = append(atFault, lrn)
		}
	}

	others := slices.DeleteFunc(s.ServersAtFault(record.SortServers(late)), func(lrn int) bool {
		return slices.Contains(atFault, lrn)
	})
	var words []string
	if len(failed) > 0 {
		words = append(words, record.JoinReasons(failed, maxFailed))
	}

	if len(others) > 0 {
		words = append(words, s.describeServers(others))
	}
	if len(waited) > 0 {
		words = append(words, record.JoinReasons(waited, maxWaited))
	}
	return record.SortServers(append(atFault, others...)), strings.Join(words, "; ")
}

// The limits, in bytes, of two parts of a stop's reason: the part about servers that failed, and the part
// about servers that waited for them. The other parts fit into the rest of record.MaxText.
const (
	maxFailed = record.MaxText * 10 / 16
	maxWaited = record.MaxText * 2 / 16
)
