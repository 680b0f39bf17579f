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

// What a leader knows of a deadline it tells the next one by lengths of time: the two
// clocks may differ by hours, and a deadline by the wrong one stops a sound update. How
// that goes is drawn in docs/dev/stall-detection.md.

// lastMoveAt returns when something has moved last, by this leader's even clock. If it
// has not seen the move itself, nor has a leader recorded it, that is when it has first
// seen the stage. Else the time that was recorded counts, as long as it agrees with the
// wait that was recorded with it; if it does not, only the wait does.
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

// recordedGate returns the gate as leaders have recorded it in this attempt; before that,
// one that says when the attempt began.
func (s Snapshot) recordedGate() record.Gate {
	if s.Gate.IsAbout(*s.Current) {
		return s.Gate
	}
	return record.Gate{At: s.Current.AttemptAt}
}

// isStageRecorded reports whether no server has moved since a leader wrote the gate, so that the wait in
// the gate is still about the present state.
func (s Snapshot) isStageRecorded() bool {
	return s.recordedGate().Progress == s.Current.Progress(s.Workers)
}

// noteInterval returns how often the leader records for how long nothing has moved.
func (s Snapshot) noteInterval() time.Duration { return min(s.Config.WorkerTimeout/4, time.Minute) }

func (s Snapshot) recordedWait() time.Duration {
	if !s.isStageRecorded() {
		return 0
	}
	return time.Duration(s.recordedGate().Waited) * time.Second
}

// owesNote reports whether the present wait must be recorded, since the next leader would take it for much
// shorter or longer than it is.
func (s Snapshot) owesNote(waited time.Duration) bool {
	recorded := s.recordedWait()
	switch {
	case s.StageSince.IsZero():
		return false
	case waited >= recorded+s.noteInterval():
		return true
	case s.Witnessed:
		return waited < recorded // the store was away
	}

	return !s.isStageRecorded()
}

// recordWait returns the action that records for how long nothing has moved. So a new leader knows it, too.
func (s Snapshot) recordWait(waited time.Duration) Action {
	return Action{
		Verb:    Note,
		Why:     fmt.Sprintf("update to %s runs", s.Current.Version),
		Changes: []updater.Change{updater.Put(keys.Gate, s.waitingGate(waited))},
	}
}

// waitingGate returns the gate's record with the time for which nothing has moved.
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

// slowTimeout returns for how long nothing may move before an alert is sent.
func (s Snapshot) slowTimeout() time.Duration { return min(5*time.Minute, s.Config.WorkerTimeout/2) }

// slowDeadline returns when an alert about a slow update is due. It is zero if the alert was sent at this
// step, or if nothing was observed yet.
func (s Snapshot) slowDeadline() time.Time {
	if s.StageSince.IsZero() || s.recordedGate().Slow {
		return time.Time{}
	}
	return s.lastMoveAt().Add(s.slowTimeout())
}

// reportSlow returns the action that sends an alert about an update that has not moved for long.
func (s Snapshot) reportSlow(now time.Time) Action {
	waited := now.Sub(s.lastMoveAt()).Truncate(time.Second)
	gate := s.waitingGate(waited)
	gate.Slow = true

	atFault, why := s.describeStall()
	message := fmt.Sprintf("update to %s is slow: nothing has moved for %s; %s", s.Current.Version, waited, why)
	alert := s.newAlert(now, record.AlertSlow, withHint(message, diagnoseHint(atFault)))
	alert.ID = fmt.Sprintf("%s-%d", alert.ID, gate.Step)
	alert.Servers = record.Blame(atFault)

	return Action{
		Verb:    Slow,
		Why:     message,
		Changes: []updater.Change{updater.Put(keys.Gate, gate), updater.Put(keys.Alert(alert.ID), alert)},
	}
}

// Activity returns the activity that the server's worker reports, or the wait at a barrier that follows
// from the records. ok is false if nothing is known.
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
		a.Message = "has installed " + w.Version + " and waits for its worker to begin"
	case w.Step > 0 && len(late) > 0:
		who := "server " + record.ListServers(late)
		if len(late) > maxDescribed {
			who = fmt.Sprint(len(late), " servers")
		}
		a.Kind = record.WaitBarrier
		a.Servers = late
		a.Message = "waits for " + who + " to come to this step"
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

// ServersAtFault returns the servers that keep the late ones from going on. A server that waits for others
// is not at fault, but those others are.
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
		case a.Kind == record.WaitQuorum: // their members are, whatever their workers do
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
	if len(atFault) == 0 { // they wait for nobody in particular, or for one another
		return late
	}

	return record.SortServers(atFault)
}

// maxDescribed is how many servers a message describes in detail, and maxDescription bounds the
// words on one, in bytes.
const (
	maxDescribed   = 5
	maxDescription = 256
)

// describeServers returns the first servers' parts of the message about a stall, and counts the others.
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

// describeServer returns one server's part of the message about a stall.
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

// describeStall returns the servers at fault for a stall, and a message about these and those that wait for
// them.
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

// failedServers returns the servers at fault for the failures of this attempt, without those that only
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

// The bytes of a stop's reason that are about servers which failed, and about those which waited
// for them. What else is in it fits into the rest of record.MaxText.
const (
	maxFailed = record.MaxText * 10 / 16
	maxWaited = record.MaxText * 2 / 16
)
