package decide

import (
	"slices"
	"time"

	"bijou/updater/clock"
	"bijou/updater/record"
)

// Observations has what a leader has seen since it leads, by its own clock.
type Observations struct {
	clock        clock.Clock
	absentSince  map[int]time.Time // servers without a presence
	handingSince map[int]time.Time // servers that hand over
	stage        stage
	stageSince   time.Time     // when the stage was seen first
	waitedBefore time.Duration // for how long nothing had moved by then, as another leader has recorded
	witnessed    bool          // the stage before was seen, too, so that stageSince is when something has moved
	afterOutage  bool          // the store has not answered since the last update
}

// NewObservations returns the observations of a leader that begins; afterOutage says that the store was
// away before, as NoteOutage does.
func NewObservations(afterOutage bool) *Observations {
	return &Observations{
		clock:        clock.New(),
		absentSince:  map[int]time.Time{},
		handingSince: map[int]time.Time{},
		afterOutage:  afterOutage,
	}
}

// NoteOutage notes that the store has not answered: servers may still be coming back, too.
func (m *Observations) NoteOutage() {
	m.afterOutage = true
}

// WallTime returns when the machine's clock shows a time that Now has led to.
func (m *Observations) WallTime(t time.Time) time.Time { return m.clock.ToWall(t) }

// Now returns the present time. While an update runs that time goes on evenly, so that no server seems late
// or missing because somebody sets the clock. Otherwise it is the machine's clock, which the update window
// is about.
func (m *Observations) Now(r *record.Request) time.Time {
	if r == nil || r.Ended() {
		was := m.clock.Now()
		m.clock = clock.New()
		if m.clock.Now().Sub(was).Abs() > time.Second { // the absences are by the clock of before
			clear(m.absentSince)
		}
		clear(m.handingSince)
	}

	return m.clock.Now().UTC()
}

// ForgetServers forgets since when servers are absent or hand over.
func (m *Observations) ForgetServers() {
	clear(m.absentSince)
	clear(m.handingSince)
}

// Update adds to a snapshot how long its facts have lasted. Time during which the store was away does not
// count against any server.
func (m *Observations) Update(s *Snapshot, present map[int]record.Presence, now time.Time) {
	if m.afterOutage {
		m.afterOutage = false
		m.ForgetServers()
		m.stage = newStage(*s)
		m.stageSince = now
		m.witnessed = true
	}

	m.updateStage(*s, now)
	s.Absent = trackAbsent(*s, present, m.absentSince, now)
	s.HandingOver = trackHandovers(*s, m.handingSince, now)
	s.StageSince = m.stageSince
	s.WaitedBefore = m.waitedBefore
	s.Witnessed = m.witnessed
}

// stage is how far an attempt at a request has come.
type stage struct{ id, attempt, gate, progress int }

func newStage(s Snapshot) stage {
	r := s.Current
	if r == nil {
		return stage{}
	}
	return stage{id: r.ID, attempt: r.Attempt, gate: s.Gate.OpenStep(*r), progress: r.Progress(s.Workers)}
}

// updateStage notes when the update has come to its present stage. After a new leader's first look, the time
// that was recorded as waited counts, too.
func (m *Observations) updateStage(s Snapshot, at time.Time) {
	switch now := newStage(s); {
	case now == stage{}:
		m.stage = now
		m.stageSince = time.Time{}
		m.waitedBefore = 0
		m.witnessed = false
	case now != m.stage:
		m.witnessed = now.id == m.stage.id && now.attempt == m.stage.attempt
		m.stage = now
		m.stageSince = at
		m.waitedBefore = s.recordedWait()
	}
}

// trackSince keeps, for each server for which the condition holds, the time since when it does. It forgets
// all others.
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

// trackHandovers tracks since when servers hand over to another binary.
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

func (s Snapshot) expectedServers() []int {
	if s.Current == nil || s.Current.Ended() {
		return s.Servers
	}
	return s.Current.Servers
}

// trackAbsent counts a server's absence from the time at which this leader first saw it, since a new leader
// knows nothing of earlier times. Servers that a previous leader has reported as missing count as absent
// for long.
func trackAbsent(
	s Snapshot,
	present map[int]record.Presence,
	absent map[int]time.Time,
	now time.Time,
) map[int]time.Time {
	seen := trackSince(absent, s.expectedServers(), now, func(lrn int) bool {
		_, here := present[lrn]
		return !here
	})

	for lrn, since := range seen {
		if since.Equal(now) && s.Current != nil && slices.Contains(s.Current.Missing, lrn) {
			seen[lrn] = now.Add(-absenceTimeout)
		}
	}

	return seen
}
