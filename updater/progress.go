package updater

import (
	"fmt"
	"time"

	"bijou/updater/record"
)

// What a leader knows of a deadline it tells the next one by lengths of time: the two
// clocks may differ by hours, and a deadline by the wrong one stops a sound update.

// progress is when something has moved last, on this leader's clock, however that
// is set meanwhile. When the leader before it said so, its clock counts if it agrees
// with what it said of the wait: clocks that do not tell nothing.
func (s Snapshot) progress() time.Time {
	if s.Witnessed {
		return s.Since
	}
	moved := s.moved()
	if s.Since.IsZero() {
		return moved
	}
	waited := s.Since.Sub(moved)
	if waited < s.Waited || waited > s.Waited+s.noteEvery()+patience {
		waited = s.Waited
	}
	return s.Since.Add(-waited)
}

// moved is when something has moved last, as the gate or the request says.
func (s Snapshot) moved() time.Time {
	if s.Gate.About(*s.Current) {
		return s.Gate.At
	}
	return s.Current.ProgressAt
}

// noteEvery is how often the leader says for how long nothing has moved.
func (s Snapshot) noteEvery() time.Duration { return min(s.Config.WorkerTimeout/4, time.Minute) }

// noted is for how long nothing had moved when it was said last.
func (s Snapshot) noted() time.Duration {
	if !s.Gate.About(*s.Current) {
		return 0
	}
	return time.Duration(s.Gate.Waited) * time.Second
}

// note says for how long nothing has moved.
func (s Snapshot) note(waited time.Duration) Action {
	r := s.Current
	g := record.Gate{
		Request: r.ID, StartedAt: r.StartedAt, Attempt: r.Attempt, Step: s.Gate.Of(*r), StepName: s.Gate.StepName, Plan: s.Gate.Plan, At: s.moved(),
		Waited: int(waited / time.Second), Slow: s.Gate.About(*r) && s.Gate.Slow,
	}
	return Action{Verb: Note, Why: fmt.Sprintf("update to %s runs", r.Version), Changes: []Change{put(s.Keys.Gate(), g)}}
}
