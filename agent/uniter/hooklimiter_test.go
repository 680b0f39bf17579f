package uniter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHookLimiter(t *testing.T) {
	s := NewHookLimiter(1)
	tickets := []ticket{s.request(), s.request(), s.request(), s.request()}
	for _, step := range []struct {
		name string
		do   func()
		want []bool // who has been granted one
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

// TestTurns: who has a slot keeps it for a second hook, and for others while nobody waits.
func TestTurns(t *testing.T) {
	s := NewHookLimiter(1)
	first := s.request()
	alone := []bool{s.mayContinue(1), s.mayContinue(2)}
	second := s.request()
	beside := []bool{s.mayContinue(1), s.mayContinue(2)}
	s.release(first)
	s.release(second)
	s.Drain()
	if diff := cmp.Diff([][]bool{{true, true}, {true, false}, {false}}, [][]bool{alone, beside, {s.mayContinue(1)}}); diff != "" {
		t.Error(diff)
	}
}
