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
// reached just before, as if [Observations.NoteOutage] had been called.
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

// Now returns the current time. r is the running or last request, or nil. While an update runs, Now uses a
// steady clock, so that setting the host's clock does not make a server seem late or missing. Otherwise it
// first adjusts the steady clock to the host's clock, to which the update window refers. It then forgets all servers
// that hand over and, if the host's clock was set, all absent servers.
func (m *Observations) Now(r *record.Request) time.Time {
	if r == nil || r.Ended() {
		before := m.clock.Now()
		m.clock = clock.New()
		// If the host's clock was set, the recorded times of absences are by the old clock.
		if m.clock.Now().Sub(before).Abs() > time.Second {
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

// Update adds to the snapshot how long servers have been absent or handing over, and how long the update has
// made no progress. present has the presences at the time now. The time of a store outage does not count as
// absence or as missing progress.
func (m *Observations) Update(s *Snapshot, present map[int]record.Presence, now time.Time) {
	if m.afterOutage {
		m.afterOutage = false
		m.ForgetServers()
		// The wait begins now, as if this leader had just seen progress. A recorded wait from before the outage
		// does not count.
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

// newStage returns the stage of the current request, or the zero stage if there is no request.
func newStage(s Snapshot) stage {
	r := s.Current
	if r == nil {
		return stage{}
	}
	return stage{id: r.ID, attempt: r.Attempt, gate: s.Gate.OpenStep(*r), progress: r.Progress(s.Workers)}
}

// updateStage records the time now for a stage that differs from the last one, and the wait in that stage that a
// previous leader has recorded, if any. Without a request, it forgets the last stage.
func (m *Observations) updateStage(s Snapshot, now time.Time) {
	current := newStage(s)
	switch current {
	case stage{}:
		// There is no request.
		m.stage = current
		m.stageSince = time.Time{}
		m.waitedBefore = 0
		m.witnessed = false
	case m.stage:
		// No server has made progress.
	default:
		// This leader has seen the progress only if it has also seen an earlier stage of this attempt.
		m.witnessed = current.id == m.stage.id && current.attempt == m.stage.attempt
		m.stage = current
		m.stageSince = now
		m.waitedBefore = s.recordedWait()
	}
}

// trackSince updates and returns the map since, which has the time at which a condition began for a server.
// It adds each of the servers lrns for which the condition now holds, with the time now. It removes each
// server for which the condition no longer holds, or that is not in lrns.
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

// trackHandovers updates and returns the map handing, which has the time since which each server has been
// handing over to an installed version.
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

// expectedServers returns the servers that must have a live worker: the servers of the running update, or all
// registered servers if no update runs.
func (s Snapshot) expectedServers() []int {
	if s.Current == nil || s.Current.Ended() {
		return s.Servers
	}
	return s.Current.Servers
}

// trackAbsent updates and returns the map absent, which has the time since which each absent server has no
// presence. The time is when this leader first saw the absence, since a new leader knows nothing about earlier
// times. A server that a previous leader has reported as missing counts as absent for absenceTimeout already.
func trackAbsent(
	s Snapshot,
	present map[int]record.Presence,
	absent map[int]time.Time,
	now time.Time,
) map[int]time.Time {
	absent = trackSince(absent, s.expectedServers(), now, func(lrn int) bool {
		_, isAlive := present[lrn]
		return !isAlive
	})

	for lrn, since := range absent {
		isNew := since.Equal(now)
		if isNew && s.Current != nil && slices.Contains(s.Current.Missing, lrn) {
			absent[lrn] = now.Add(-absenceTimeout)
		}
	}

	return absent
}
