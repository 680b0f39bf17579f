package decide

import (
	"testing"
	"time"

	"bijou/updater/record"
)

// TestUnseenMove checks that progress while there is no leader restarts the wait for the next leader. All
// later leaders must know the start of the wait, even if leaders change often.
func TestUnseenMove(t *testing.T) {
	s, m := running(at(1), at(1), at(1)), NewObservations(false)
	present := map[int]record.Presence{1: {}, 2: {}, 10: {}}
	leadAt := func(after time.Duration) Action {
		m.Update(&s, present, t0().Add(after))
		a := Next(s, t0().Add(after))
		for _, c := range a.Changes {
			if g, ok := c.Value.(record.Gate); ok {
				s.Gate = g
			}
		}
		return a
	}
	leadAt(0) // this leader opens the gate
	leadAt(0)
	if leadAt(50 * time.Minute); s.Gate.Step != 1 || s.Gate.Waited != 50*60 {
		t.Fatalf("the first leader has written %+v", s.Gate)
	}
	s.Workers[10] = at(2)
	const moved = 50*time.Minute + 10*time.Second
	m = NewObservations(false)
	if a := leadAt(moved); a.Verb != Note || s.Gate.Waited != 0 || s.Gate.Step != 1 || !s.Gate.At.Equal(t0().Add(moved)) {
		t.Errorf("the second leader: %s, and has written %+v", a.Verb, s.Gate)
	}
	deadline := moved + time.Hour + StallGrace
	for after := moved + time.Second; ; after += 20 * time.Second {
		m = NewObservations(false)
		a := leadAt(after)
		if a.Verb == Stop && after >= deadline {
			return
		}
		if a.Verb == Stop || after > deadline+20*time.Second {
			t.Fatalf("%s after the move: %s: %s", after-moved, a.Verb, a.Why)
		}
	}
}

// TestMoveAfterTheNote checks that if a leader ends before it has recorded progress, the next leader does
// not use the old wait.
func TestMoveAfterTheNote(t *testing.T) {
	s := since(10*time.Minute, 10*time.Minute)
	s.Workers[1] = at(2)
	for _, when := range []time.Duration{0, time.Second, time.Hour + StallGrace - time.Second} {
		if a := Next(s, s.StageSince.Add(when)); a.Verb != Note {
			t.Errorf("%s after it was first seen: %s: %s", when, a.Verb, a.Why)
		}
	}
	if a := Next(s, s.StageSince.Add(time.Hour+StallGrace)); a.Verb != Stop {
		t.Errorf("when nothing moves any more: %s: %s", a.Verb, a.Why)
	}
}
