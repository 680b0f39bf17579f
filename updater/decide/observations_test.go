package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/updater/clock"
	"bijou/updater/record"
)

// TestMemory checks the observations of a leader: the time of the last progress, and the servers that are
// handing over. The time of a store outage does not count.
func TestMemory(t *testing.T) {
	m := NewObservations(false)
	tell := func(after time.Duration, s Snapshot) Snapshot {
		m.Update(&s, nil, t0().Add(after))
		return s
	}
	s := tell(0, running(at(1), at(1), at(1)))
	if !s.StageSince.Equal(t0()) || s.Witnessed {
		t.Errorf("at first it has seen things move at %s, %t", s.StageSince, s.Witnessed)
	}
	if s = tell(time.Minute, running(at(1), at(2), at(1))); !s.StageSince.Equal(t0().Add(time.Minute)) || !s.Witnessed {
		t.Errorf("when one moves it says %s, %t", s.StageSince, s.Witnessed)
	}
	if s = tell(2*time.Minute, running(at(1), at(2), at(1))); !s.StageSince.Equal(t0().Add(time.Minute)) {
		t.Errorf("when nothing moves it says %s", s.StageSince)
	}
	h := handing(time.Time{})
	tell(3*time.Minute, h)
	if s = tell(4*time.Minute, h); !s.HandingOver[1].Equal(t0().Add(3 * time.Minute)) {
		t.Errorf("it has seen hand over: %v", s.HandingOver)
	}
	m.NoteOutage()
	if s = tell(5*time.Minute, h); !s.StageSince.Equal(t0().Add(5*time.Minute)) || !s.HandingOver[1].Equal(s.StageSince) || !s.Absent[1].Equal(s.StageSince) {
		t.Errorf("when the store is back it says %s, %v, %v", s.StageSince, s.HandingOver, s.Absent)
	}
	if s = tell(6*time.Minute, running(at(1), at(1), at(1))); len(s.HandingOver) > 0 {
		t.Errorf("when all have come up it says %v", s.HandingOver)
	}
}

// TestLeadersTime checks that a leader's time is steady while an update runs, even if its host's clock is
// set. Without an update, its time is that of the host's clock.
func TestLeadersTime(t *testing.T) {
	hourAgo := clock.StartAt(time.Now().Add(-time.Hour))
	for _, tt := range []struct {
		what   string
		r      *record.Request
		steady bool
	}{
		{"an update runs", request(nil), true},
		{"it was stopped by hand, which is not reported yet", request(func(r *record.Request) { r.Stop = true }), true},
		{"none", nil, false},
		{"it has ended", ended(false), false},
		{"it was stopped", ended(true), false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			m := &Observations{clock: hourAgo}
			now := m.Now(tt.r)
			if off := time.Since(now); (off > 30*time.Minute) != tt.steady {
				t.Errorf("the leader's time is %s behind", off)
			}
			if until := m.WallTime(now.Add(time.Minute)); time.Until(until) > time.Minute || time.Until(until) < 0 {
				t.Errorf("a minute from now is %s from now outside", time.Until(until))
			}
		})
	}
	if at := hourAgo.ToWall(time.Time{}); !at.IsZero() {
		t.Errorf("no time is %s outside", at)
	}
}

// TestAbsentees checks that a new leader counts a server's absence from the moment it first saw it.
func TestAbsentees(t *testing.T) {
	absent := map[int]time.Time{}
	s := running(at(1))
	present := map[int]record.Presence{2: {}}
	trackAbsent(s, present, absent, t0())
	trackAbsent(s, map[int]record.Presence{1: {}, 2: {}}, absent, t0().Add(time.Second))
	if diff := cmp.Diff(map[int]time.Time{10: t0()}, absent); diff != "" {
		t.Error(diff)
	}
	s.Current.Missing = []int{10}
	s.Absent = trackAbsent(s, map[int]record.Presence{1: {}, 2: {}}, map[int]time.Time{}, t0())
	if a := Next(s, t0()); a.Verb != Wait {
		t.Errorf("a new leader, of what was reported before: %s %s", a.Verb, a.Why)
	}
	if s.Current = nil; len(trackAbsent(s, present, map[int]time.Time{}, t0())) != len(s.Servers)-1 {
		t.Error("where none runs, all that are registered are awaited")
	}
	s.Servers = nil
	if trackAbsent(s, present, absent, t0()); len(absent) != 0 {
		t.Error(absent)
	}
}
