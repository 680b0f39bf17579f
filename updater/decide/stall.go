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

// StallGrace is added to the workers' own timeout before the leader stops an update, so that a worker can
// report the reason first.
const StallGrace = 30 * time.Second

// stallDeadline returns when the leader stops an update that makes no progress.
func (s Snapshot) stallDeadline() time.Time {
	return s.lastMoveAt().Add(s.Config.WorkerTimeout + StallGrace)
}

// A leader records, for the next leader, how long there has been no progress. It records a duration and not a
// deadline, since the clocks of two leaders can differ by hours. A deadline by the wrong clock would stop a
// healthy update. See docs/dev/stall-detection.md.

// lastMoveAt returns the time of the last progress, by this leader's steady clock. If this leader has seen
// the progress, or if no leader has recorded the progress, that is the time when this leader first saw the
// stage. Otherwise recordedGate has the time of the progress, perhaps by another leader's clock, and the wait
// since then. lastMoveAt uses the recorded time if it agrees with the recorded wait, and otherwise only the
// wait. If this leader has not observed the update yet, lastMoveAt returns the recorded time unchanged.
func (s Snapshot) lastMoveAt() time.Time {
	recordedTime := s.recordedGate().At
	if s.StageSince.IsZero() {
		return recordedTime
	}
	if s.Witnessed || !s.isStageRecorded() {
		return s.StageSince
	}

	// The real wait can be longer than the recorded one. A leader records its wait only once in noteInterval,
	// and StallGrace is long enough to elect the next leader.
	minWait := s.WaitedBefore
	maxWait := s.WaitedBefore + s.noteInterval() + StallGrace
	waited := s.StageSince.Sub(recordedTime)
	if waited < minWait || waited > maxWait {
		// The clocks of the two leaders differ, or there was no leader for a long time.
		waited = s.WaitedBefore
	}
	return s.StageSince.Add(-waited)
}

// recordedGate returns the gate that a leader has recorded in this attempt. If no leader has recorded one yet,
// recordedGate returns a gate with the time when the attempt began.
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

// recordedWait returns the recorded time without progress, or 0 if there was progress since the record.
func (s Snapshot) recordedWait() time.Duration {
	if !s.isStageRecorded() {
		return 0
	}
	return time.Duration(s.recordedGate().Waited) * time.Second
}

// owesNote reports whether the leader must record waited, the current time without progress. Without this
// record, the next leader would assume a much shorter or longer time.
func (s Snapshot) owesNote(waited time.Duration) bool {
	recorded := s.recordedWait()
	switch {
	case s.StageSince.IsZero():
		return false
	case waited >= recorded+s.noteInterval():
		return true
	case s.Witnessed:
		// After an outage of the store, the wait begins again, and is shorter than the recorded one.
		return waited < recorded
	}

	// This leader did not see when the progress happened. It records its wait at once, so that the next leader
	// does not lose that time also.
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

// waitingGate returns the gate's record with waited, the current time without progress. The record opens the
// same step as before.
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

// reportSlow returns the action that writes an alert about an update without progress. The action also sets
// Slow in the gate's record, so that the alert is not repeated at this step.
func (s Snapshot) reportSlow(now time.Time) Action {
	waited := now.Sub(s.lastMoveAt()).Truncate(time.Second)
	gate := s.waitingGate(waited)
	gate.Slow = true

	atFault, why := s.describeStall()
	message := fmt.Sprintf("update to %s is slow: no progress for %s; %s", s.Current.Version, waited, why)
	alert := s.newAlert(now, record.AlertSlow, withHint(message, diagnoseHint(atFault)))
	// Several steps of an attempt can be slow, and each needs its own alert.
	alert.ID = fmt.Sprintf("%s-%d", alert.ID, gate.Step)
	alert.Servers = record.Blame(atFault)

	return Action{
		Verb:    Slow,
		Why:     message,
		Changes: []updater.Change{updater.Put(keys.Gate, gate), updater.Put(keys.Alert(alert.ID), alert)},
	}
}

// Activity returns the activity that the server's worker reports. If the worker reports none, Activity
// returns the wait that follows from the workers' records. ok is false if the worker has finished, or if its
// activity is unknown.
func (s Snapshot) Activity(lrn int) (a record.Activity, ok bool) {
	w, hasAnswered := s.workerRecord(lrn)
	if !hasAnswered || w.Finished {
		return a, false
	}
	// IsOf is false if the reported activity belongs to an earlier step.
	if reported, isReported := s.Activities[lrn]; isReported && reported.IsOf(w) {
		return reported, true
	}

	a = record.Activity{Request: w.Request, Attempt: w.Attempt, Step: w.Step, Since: w.At}
	late := s.serversBehind(w.Step)

	switch {
	case w.HandsOver():
		// Kind stays "", since the worker waits for no other server.
		a.Message = "has installed " + w.Version + " and waits for the worker of that version to start"
	case w.Step > 0 && len(late) > 0:
		awaited := "server " + record.ListServers(late)
		if len(late) > maxDescribed {
			awaited = fmt.Sprint(len(late), " servers")
		}
		a.Kind = record.WaitBarrier
		a.Servers = late
		a.Message = "waits for " + awaited + " to reach this step"
	}

	return a, a.Message != ""
}

// serversBehind returns the update's servers that have not reached the step.
func (s Snapshot) serversBehind(step int) (late []int) {
	for _, lrn := range s.Current.Servers {
		w, ok := s.workerRecord(lrn)
		hasReached := ok && (w.Finished || w.Step >= step)
		if !hasReached {
			late = append(late, lrn)
		}
	}
	return late
}

// ServersAtFault returns the servers that block the late servers, in numeric order. It follows the waits of the late
// servers to servers that are absent, or that wait for nothing: these are at fault. If a server waits for a quorum, the
// servers of the missing members are at fault. If no server can be blamed, ServersAtFault returns late.
func (s Snapshot) ServersAtFault(late []int) (atFault []int) {
	seen := map[int]bool{}
	var follow func(lrn int)

	follow = func(lrn int) {
		if seen[lrn] {
			return
		}
		seen[lrn] = true

		a, _ := s.Activity(lrn)
		_, isAbsent := s.Absent[lrn]
		isWaiting := a.Kind != ""
		switch {
		case isAbsent || !isWaiting:
			atFault = append(atFault, lrn)
		case a.Kind == record.WaitQuorum:
			// The members on these servers are at fault, even if their workers also wait for others.
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

	return record.SortServers(atFault) // without duplicates
}

// maxDescribed is the maximum number of servers that a message describes in detail. maxDescription limits the
// description of one server, in bytes.
const (
	maxDescribed   = 5
	maxDescription = 256
)

// describeServers describes the first maxDescribed servers for a message about a stall, and counts the others.
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
	w, hasAnswered := s.workerRecord(lrn)
	var text string
	switch {
	case !hasAnswered:
		text = fmt.Sprintf("server %d has not answered", lrn)
	case w.Finished:
		text = fmt.Sprintf("server %d is done", lrn)
	default:
		text = fmt.Sprintf("server %d is at step %s", lrn, w.StepName)
		if a, _ := s.Activity(lrn); a.Message != "" {
			text += ": " + a.Text()
		}
	}

	if _, isAbsent := s.Absent[lrn]; isAbsent {
		text += " (no worker is alive there)"
	}
	return text
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

// failedServers returns the servers at fault for the failures of this attempt, and a message about the
// failures. A server whose worker only waited in vain for other servers is not at fault for that failure.
// Instead, the servers that block the awaited servers are at fault, as returned by ServersAtFault. Both results
// are empty if no worker has failed.
func (s Snapshot) failedServers(now time.Time) (atFault []int, why string) {
	var failures, waits []record.Reason
	var waitedFor []int

	for _, lrn := range s.Current.Servers {
		w, failure := s.workerFailure(lrn, now)
		reason := record.Reason{Server: lrn, Where: "step " + w.StepName, Why: failure}
		switch {
		case failure == "":
			// This server has not failed.
		case len(w.WaitedFor) > 0:
			waits = append(waits, reason)
			waitedFor = append(waitedFor, w.WaitedFor...)
		default:
			failures = append(failures, reason)
			atFault = append(atFault, lrn)
		}
	}

	blockers := s.ServersAtFault(record.SortServers(waitedFor))
	blockers = slices.DeleteFunc(blockers, func(lrn int) bool { return slices.Contains(atFault, lrn) })

	var parts []string
	if len(failures) > 0 {
		parts = append(parts, record.JoinReasons(failures, maxFailed))
	}
	if len(blockers) > 0 {
		parts = append(parts, s.describeServers(blockers))
	}
	if len(waits) > 0 {
		parts = append(parts, record.JoinReasons(waits, maxWaited))
	}

	return record.SortServers(append(atFault, blockers...)), strings.Join(parts, "; ")
}

// The limits, in bytes, of two parts of a stop's reason: the part about servers that failed, and the part
// about servers that waited for them. The other parts fit into the rest of record.MaxText.
const (
	maxFailed = record.MaxText * 10 / 16
	maxWaited = record.MaxText * 2 / 16
)
