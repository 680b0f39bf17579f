package decide

import (
	"slices"
	"time"

	"bijou/updater/clock"
	"bijou/updater/record"
)

// Observations holds what a leader has observed since its election, by its own clock.
type Observations struct {
	clock        clock.Clock
	absentSince  map[int]time.Time // servers without a presence
	handingSince map[int]time.Time // servers that hand over to an installed version
	stage        stage
	stageSince   time.Time     // when the stage was first seen
	waitedBefore time.Duration // the time without progress before stageSince, as recorded by another leader
	witnessed    bool          // the previous stage was also seen, so stageSince is the time of the last progress
	afterOutage  bool          // the store could not be reached since the last Update
}

// NewObservations returns the observations of a new leader. afterOutage says that the store could not be
// reached before, as after [Observations.NoteOutage].
func NewObservations(afterOutage bool) *Observations {
	return &Observations{
		clock:        clock.New(),
		absentSince:  map[int]time.Time{},
		handingSince: map[int]time.Time{},
		afterOutage:  afterOutage,
	}
}

// NoteOutage records that the store could not be reached. The servers may also need time to come back.
func (m *Observations) NoteOutage() {
	m.afterOutage = true
}

// WallTime converts a time that is based on Now to the host's clock.
func (m *Observations) WallTime(t time.Time) time.Time { return m.clock.ToWall(t) }

// Now returns the current time. While an update runs, it uses a steady clock, so that setting the host's
// clock does not make a server seem late or missing. Otherwise it uses the host's clock, to which the update
// window refers.
func (m *Observations) Now(r *record.Request) time.Time {
	if r == nil || r.Ended() {
		was := m.clock.Now()
		m.clock = clock.New()
		// If the host's clock was set, the recorded times of absences are by the old clock.
		if m.clock.Now().Sub(was).Abs() > time.Second {
			clear(m.absentSince)
		}
		clear(m.handingSince)
	}

	return m.clock.Now().UTC()
}

// ForgetServers forgets all absent servers, and all servers that hand over.
func (m *Observations) ForgetServers() {
	clear(m.absentSince)
	clear(m.handingSince)
}

// Update adds to the snapshot how long its facts have lasted. It does not count the time of a store outage
// against any server.
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

// stage is the progress of an attempt at a request.
type stage struct{ id, attempt, gate, progress int }

func newStage(s Snapshot) stage {
	r := s.Current
	if r == nil {
		return stage{}
	}
	return stage{id: r.ID, attempt: r.Attempt, gate: s.Gate.OpenStep(*r), progress: r.Progress(s.Workers)}
}

// updateStage records the time of a new stage. If the leader is new, it keeps the wait that a previous leader has
// recorded.
func (m *Observations) updateStage(s Snapshot, now time.Time) {
	present := newStage(s)
	switch present {
	case stage{}:
		// There is no update.
		m.stage = present
		m.stageSince = time.Time{}
		m.waitedBefore = 0
		m.witnessed = false
	case m.stage:
		// No server has made progress.
	default:
		m.witnessed = present.id == m.stage.id && present.attempt == m.stage.attempt
		m.stage = present
		m.stageSince = now
		m.waitedBefore = s.recordedWait()
	}
}

// trackSince keeps, for each server for which the condition holds, the time since which it holds. It
// removes all other servers.
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

// trackHandovers tracks since when servers have been handing over to an installed version.
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

// trackAbsent tracks since when servers have been absent. A server's absence counts from the time at which
// this leader first saw it, since a new leader knows nothing about earlier times. Servers that a previous
// leader has reported as missing already count as absent for absenceTimeout.
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
