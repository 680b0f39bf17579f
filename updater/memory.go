package updater

import (
	"slices"
	"time"

	"bijou/updater/record"
)

// memory is what a leader has seen itself.
type memory struct {
	clock   clock
	absent  map[int]time.Time // since when it has seen no presence of servers
	handing map[int]time.Time // since when it has seen servers hand over
	seen    stage
	at      time.Time     // when it has first seen that
	waited  time.Duration // for how long nothing had moved then, as another leader said
	saw     bool          // it has seen the stage before, too, so that this is when it was come to
	away    bool          // the store has not answered since
}

// newMemory remembers nothing; back says that the store was away just before.
func newMemory(back bool) *memory {
	return &memory{clock: newClock(), absent: map[int]time.Time{}, handing: map[int]time.Time{}, away: back}
}

// now is the time. While an update runs it goes on evenly, so that no server is late
// or missing because somebody sets the machine's clock; what says when one may start
// is about that clock.
func (m *memory) now(r *record.Request) time.Time {
	if r == nil || r.Ended() {
		was := m.clock.now()
		m.clock = newClock()
		if m.clock.now().Sub(was).Abs() > time.Second { // they are by the time as it was
			clear(m.absent)
		}
		clear(m.handing)
	}
	return m.clock.now().UTC()
}

// tell puts what it knows into the snapshot. The time in which the store was away is
// nobody's fault, and counts for nothing.
func (m *memory) tell(s *Snapshot, present map[int]record.Presence, now time.Time) {
	if m.away {
		m.away = false
		clear(m.absent)
		clear(m.handing)
		m.seen, m.at, m.saw = stageOf(*s), now, true
	}
	m.see(*s, now)
	s.Absent = absentees(*s, present, m.absent, now)
	s.Handing = handovers(*s, m.handing, now)
	s.Since, s.Waited, s.Witnessed = m.at, m.waited, m.saw
}

// stage is how far an attempt at a request has come.
type stage struct{ id, attempt, gate, moves int }

func stageOf(s Snapshot) stage {
	r := s.Current
	if r == nil {
		return stage{}
	}
	return stage{r.ID, r.Attempt, s.Gate.Of(*r), moves(*r, s.Workers)}
}

// moves counts what the servers have done for the request: it grows with everything
// that one of them does.
func moves(r record.Request, all map[int]record.Status) (n int) {
	for _, lrn := range r.Servers {
		w, ok := all[lrn]
		if !ok || !w.For(r) {
			continue
		}
		n += 2 + 2*w.Step
		if w.Finished || w.HandsOver() {
			n++
		}
	}
	return n
}

// see keeps when it has first seen the request where it is.
func (m *memory) see(s Snapshot, at time.Time) {
	switch now := stageOf(s); {
	case now == stage{}:
		m.seen, m.at, m.waited, m.saw = now, time.Time{}, 0, false
	case now != m.seen:
		m.saw = now.id == m.seen.id && now.attempt == m.seen.attempt
		m.seen, m.at, m.waited = now, at, s.noted()
	}
}

// track brings up to date since when something has been seen to hold of servers.
func track(since map[int]time.Time, lrns []int, now time.Time, holds func(lrn int) bool) map[int]time.Time {
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

// handovers brings up to date since when servers have been seen to wait for the
// version that they have installed.
func handovers(s Snapshot, handing map[int]time.Time, now time.Time) map[int]time.Time {
	var lrns []int
	if s.Current != nil {
		lrns = s.Current.Servers
	}
	return track(handing, lrns, now, func(lrn int) bool {
		w, ok := s.worker(lrn)
		return ok && w.Attempt == s.Current.Attempt && w.HandsOver()
	})
}

// awaited are the servers whose workers should live: of the request that runs, else all.
func (s Snapshot) awaited() []int {
	if s.Current == nil || s.Current.Ended() {
		return s.Servers
	}
	return s.Current.Servers
}

// absentees brings up to date since when servers have been seen to
// be absent, first from this moment on: a new leader has not seen them before. Those
// that another leader has reported to be missing have been absent for long.
func absentees(s Snapshot, present map[int]record.Presence, absent map[int]time.Time, now time.Time) map[int]time.Time {
	seen := track(absent, s.awaited(), now, func(lrn int) bool { _, here := present[lrn]; return !here })
	for lrn, since := range seen {
		if since.Equal(now) && s.Current != nil && slices.Contains(s.Current.Missing, lrn) {
			seen[lrn] = now.Add(-absence)
		}
	}
	return seen
}
