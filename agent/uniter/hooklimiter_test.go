package uniter

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHookLimiter(t *testing.T) {
	s := NewHookLimiter(1)
	tickets := []*ticket{s.request(nil, 1), s.request(nil, 1), s.request(nil, 1), s.request(nil, 1)}
	for _, step := range []struct {
		name string
		do   func()
		want []bool // which tickets have a slot
	}{
		{"one slot", func() {}, []bool{true, false, false, false}},
		{"who waits goes", func() { s.release(tickets[1]) }, []bool{true, false, false, false}},
		{"two slots", func() { s.Resize(2) }, []bool{true, false, true, false}},
		{"one again", func() { s.Resize(1) }, []bool{true, false, true, false}},
		{"the first ends", func() { s.release(tickets[0]) }, []bool{true, false, true, false}},
		{"the next ends", func() { s.release(tickets[2]) }, []bool{true, false, true, true}},
	} {
		step.do()
		var got []bool
		for _, one := range tickets {
			got = append(got, one.isGranted())
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

// TestTurns checks that a unit keeps its slot for a second hook, and for more hooks while no other unit
// waits.
func TestTurns(t *testing.T) {
	s := NewHookLimiter(1)
	first := s.request(nil, 1)
	alone := []bool{s.mayContinue(first, 1), s.mayContinue(first, 2)}
	second := s.request(nil, 1)
	beside := []bool{s.mayContinue(first, 1), s.mayContinue(first, 2)}
	s.release(first)
	s.release(second)
	s.Drain()
	if diff := cmp.Diff([][]bool{{true, true}, {true, false}, {false}}, [][]bool{alone, beside, {s.mayContinue(first, 1)}}); diff != "" {
		t.Error(diff)
	}
}

// TestWhoOwesMost checks one preferred slot among two. The unit with the most queued hooks gets it before
// units that have waited longer, and keeps it while it has more queued hooks than they have. It does not get
// the other slot. Without this, a unit with many relations would finish last.
func TestWhoOwesMost(t *testing.T) {
	s := NewHookLimiter(2)
	running := []*ticket{s.request(nil, 1), s.request(nil, 1)} // the first has the preferred slot
	early, hub, second := s.request(nil, 2), s.request(nil, 1), s.request(nil, 40)
	s.request(hub, 50) // more hooks were queued
	s.release(running[0])
	granted := func() []bool { return []bool{early.isGranted(), hub.isGranted(), second.isGranted()} }
	if got, want := granted(), []bool{false, true, false}; !slices.Equal(got, want) {
		t.Errorf("the preferred slot is free: granted %v, want %v", got, want)
	}
	if got, want := []bool{s.mayContinue(hub, 10), s.mayContinue(hub, 11)}, []bool{true, false}; !slices.Equal(got, want) {
		t.Errorf("40 hooks are owed by another: may continue after 10 and 11: %v, want %v", got, want)
	}
	s.release(running[1])
	if got, want := granted(), []bool{true, true, false}; !slices.Equal(got, want) {
		t.Errorf("the other slot is free: granted %v, want %v", got, want)
	}
	s.release(hub)
	if got, want := granted(), []bool{true, true, true}; !slices.Equal(got, want) {
		t.Errorf("the preferred slot is free again: granted %v, want %v", got, want)
	}
	if s.mayContinue(early, maxHooksInTurn) != true {
		t.Error("nobody waits: the turn goes on")
	}
}

// TestLongTurnsEnd checks that the preferred unit releases its slot after a while, since long hooks may keep
// the other slots for hours. If there is only one slot, the unit releases it like any other unit.
func TestLongTurnsEnd(t *testing.T) {
	turn := func(s *HookLimiter, of *ticket) int {
		hooks := 1
		for s.mayContinue(of, hooks) {
			hooks++
		}
		return hooks
	}
	s := NewHookLimiter(2)
	hub, long, waits := s.request(nil, 1000), s.request(nil, 0), s.request(nil, 1)
	if got := turn(s, hub); got != maxPreferredTurn {
		t.Errorf("a turn of %d hooks, want %d", got, maxPreferredTurn)
	}
	s.release(hub)
	if !waits.isGranted() {
		t.Error("its place goes to nobody")
	}
	s.release(waits)
	hub = s.request(nil, 1000)
	s.Resize(1)
	s.request(nil, 1)
	s.release(long)
	if got := turn(s, hub); got != maxHooksInTurn {
		t.Errorf("of one place a turn of %d hooks, want %d", got, maxHooksInTurn)
	}
}
