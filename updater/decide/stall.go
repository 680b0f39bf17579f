package decide

import (
	"fmt"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// What a leader knows of a deadline it tells the next one by lengths of time: the two
// clocks may differ by hours, and a deadline by the wrong one stops a sound update. How
// that goes is drawn in docs/reference/stall-detection.md.

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

// isStageRecorded reports whether nothing has moved since a leader wrote the gate, so that
// the wait in it is still about what there is.
func (s Snapshot) isStageRecorded() bool {
	return s.recordedGate().Progress == s.Current.Progress(s.Workers)
}

// noteInterval is how often the leader records for how long nothing has moved.
func (s Snapshot) noteInterval() time.Duration { return min(s.Config.WorkerTimeout/4, time.Minute) }

func (s Snapshot) recordedWait() time.Duration {
	if !s.isStageRecorded() {
		return 0
	}
	return time.Duration(s.recordedGate().Waited) * time.Second
}

// owesNote reports whether the next leader would take the wait for much shorter or longer
// than it is, if this one ended now.
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

func (s Snapshot) recordWait(waited time.Duration) Action {
	r := s.Current
	g := record.Gate{
		Request: r.ID, StartedAt: r.StartedAt, Attempt: r.Attempt, Step: s.Gate.OpenStep(*r), StepName: s.Gate.StepName, Plan: s.Gate.Plan,
		At: s.lastMoveAt(), Progress: r.Progress(s.Workers), Waited: int(waited / time.Second), Slow: s.recordedGate().Slow,
	}
	return Action{Verb: Note, Why: fmt.Sprintf("update to %s runs", r.Version), Changes: []updater.Change{updater.Put(keys.Gate, g)}}
}

// slowTimeout is for how long nothing may move before an alert says so.
func (s Snapshot) slowTimeout() time.Duration { return min(5*time.Minute, s.Config.WorkerTimeout/2) }

// slowDeadline is zero if the alert was sent at this step, or if nothing was observed yet.
func (s Snapshot) slowDeadline() time.Time {
	if s.StageSince.IsZero() || s.recordedGate().Slow {
		return time.Time{}
	}
	return s.lastMoveAt().Add(s.slowTimeout())
}

func (s Snapshot) reportSlow(now time.Time) Action {
	waited := now.Sub(s.lastMoveAt()).Truncate(time.Second)
	a := s.recordWait(waited)
	g, _ := a.Changes[0].Value.(record.Gate)
	g.Slow = true
	atFault, why := s.describeStall()
	a.Verb, a.Why = Slow, fmt.Sprintf("update to %s is slow: nothing has moved for %s; %s", s.Current.Version, waited, why)
	alert := s.newAlert(now, record.AlertSlow, a.Why)
	alert.ID, alert.Servers = fmt.Sprintf("%s-%d", alert.ID, g.Step), atFault
	a.Changes = []updater.Change{updater.Put(keys.Gate, g), updater.Put(keys.Alert(alert.ID), alert)}
	return a
}
