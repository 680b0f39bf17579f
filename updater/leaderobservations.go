package updater

import (
	"slices"
	"time"

	"bijou/updater/record"
)

// observations is what a leader has seen itself.
type observations struct {
	clock        clock
	absentSince  map[int]time.Time // since when it has seen no presence of servers
	handingSince map[int]time.Time // since when it has seen servers hand over
	stage        stage
	stageSince   time.Time     // when it has first seen that
	waitedBefore time.Duration // for how long nothing had moved then, as another leader said
	witnessed    bool          // it has seen the stage before, too, so that this is when it was come to
	afterOutage  bool          // the store has not answered since
}

// newObservations remembers nothing; back says that the store was away just before.
func newObservations(back bool) *observations {
	return &observations{clock: newClock(), absentSince: map[int]time.Time{}, handingSince: map[int]time.Time{}, afterOutage: back}
}

// now is the time. While an update runs it goes on evenly, so that no server is late
// or missing because somebody sets the machine's clock; what says when one may start
// is about that clock.
func (m *observations) now(r *record.Request) time.Time {
	if r == nil || r.Ended() {
		was := m.clock.now()
		m.clock = newClock()
		if m.clock.now().Sub(was).Abs() > time.Second { // they are by the time as it was
			clear(m.absentSince)
		}
		clear(m.handingSince)
	}
	return m.clock.now().UTC()
}

// update puts what it knows into the snapshot. The time in which the store was away is
// nobody's fault, and counts for nothing.
func (m *observations) update(s *Snapshot, present map[int]record.Presence, now time.Time) {
	if m.afterOutage {
		m.afterOutage = false
		clear(m.absentSince)
		clear(m.handingSince)
		m.stage, m.stageSince, m.witnessed = newStage(*s), now, true
	}
	m.updateStage(*s, now)
	s.Absent = trackAbsent(*s, present, m.absentSince, now)
	s.HandingOver = trackHandovers(*s, m.handingSince, now)
	s.StageSince, s.WaitedBefore, s.Witnessed = m.stageSince, m.waitedBefore, m.witnessed
}

// stage is how far an attempt at a request has come.
type stage struct{ id, attempt, gate, progress int }

func newStage(s Snapshot) stage {
	r := s.Current
	if r == nil {
		return stage{}
	}
	return stage{r.ID, r.Attempt, s.Gate.Of(*r), r.Progress(s.Workers)}
}

// updateStage keeps when it has first seen the request where it is.
func (m *observations) updateStage(s Snapshot, at time.Time) {
	switch now := newStage(s); {
	case now == stage{}:
		m.stage, m.stageSince, m.waitedBefore, m.witnessed = now, time.Time{}, 0, false
	case now != m.stage:
		m.witnessed = now.id == m.stage.id && now.attempt == m.stage.attempt
		m.stage, m.stageSince, m.waitedBefore = now, at, s.recordedWait()
	}
}

// trackSince brings up to date since when something has been seen to hold of servers.
func trackSince(since map[int]time.Time, lrns []int, now time.Time, holds func(lrn int) bool) map[int]time.Time {
	for lrn := range since {
		if !slices.Contains(lrns, lrn) || !holds(lrn) {
			delete(since, lrn)
		}
	}
	for _, lrn := range lrns {
		if _, known := since[lrn]; !known && holds(lrn) {
			since[lrn] = now
		}
	}
	return since
}

// trackHandovers brings up to date since when servers have been seen to wait for the
// version that they have installed.
func trackHandovers(s Snapshot, handing map[int]time.Time, now time.Time) map[int]time.Time {
	var lrns []int
	if s.Current != nil {
		lrns = s.Current.Servers
	}
	return trackSince(handing, lrns, now, func(lrn int) bool {
		w, ok := s.workerRecord(lrn)
		return ok && w.Attempt == s.Current.Attempt && w.HandsOver()
	})
}

// expectedServers are the servers whose workers should live: of the request that runs, else all.
func (s Snapshot) expectedServers() []int {
	if s.Current == nil || s.Current.Ended() {
		return s.Servers
	}
	return s.Current.Servers
}

// trackAbsent brings up to date since when servers have been seen to
// be absent, first from this moment on: a new leader has not seen them before. Those
// that another leader has reported to be missing have been absent for long.
func trackAbsent(s Snapshot, present map[int]record.Presence, absent map[int]time.Time, now time.Time) map[int]time.Time {
	seen := trackSince(absent, s.expectedServers(), now, func(lrn int) bool { _, here := present[lrn]; return !here })
	for lrn, since := range seen {
		if since.Equal(now) && s.Current != nil && slices.Contains(s.Current.Missing, lrn) {
			seen[lrn] = now.Add(-absenceTimeout)
		}
	}
	return seen
}
