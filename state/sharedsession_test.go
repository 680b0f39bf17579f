package state_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"bijou/state"
	"bijou/testscripts/fakes/memstore"
	"bijou/testscripts/kit/statetest"
)

// TestProcessHasOneSession checks a session that two roles share. The campaign waits until the agents
// are announced, at first and after each loss.
func TestProcessHasOneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, err := state.CreateIn(t.Context(), memstore.New(), statetest.Environment())
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		p := state.NewSharedSession(st, true)
		var last *state.Session
		for range 3 {
			standing := make(chan *state.Session)
			go func() {
				s, err := p.AnnouncedSession(t.Context())
				if err != nil {
					t.Error(err)
				}
				standing <- s
			}()
			synctest.Wait()
			s, err := p.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if s == last {
				t.Fatal("a session that is lost was given out")
			}
			select {
			case <-standing:
				t.Fatal("a campaign came before the presence")
			default:
			}
			if last != nil {
				p.MarkAnnounced(last) // this is too late to have an effect
			}
			p.MarkAnnounced(s)
			p.MarkAnnounced(s)
			if got := <-standing; got != s {
				t.Error("the roles have different sessions")
			}
			if err := s.Close(t.Context()); err != nil { // this is like a loss of the session
				t.Fatal(err)
			}
			last = s
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestStandingEndsWithItsContext checks a process whose agents are never announced.
func TestStandingEndsWithItsContext(t *testing.T) {
	st := statetest.New(t)
	p := state.NewSharedSession(st, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.AnnouncedSession(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	alone := state.NewSharedSession(st, false)
	if _, err := alone.AnnouncedSession(t.Context()); err != nil {
		t.Errorf("without agents: %v", err)
	}
	if err := errors.Join(p.Close(t.Context()), alone.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestAnnounceAll announces more agents than fit in one transaction, one of which is gone.
func TestAnnounceAll(t *testing.T) {
	st := statetest.New(t)
	c := statetest.AddCharm(t, st, statetest.Meta("app", "provides: {}\n"))
	statetest.AddServiceOf(t, st, c, "app", 120)
	s := statetest.Session(t, st)
	agents := []string{"unit-app-999"}
	for _, u := range statetest.Read(t, st, func(v *state.View) ([]state.Unit, error) { return v.Units("app") }) {
		agents = append(agents, state.UnitAgent(u.Name))
	}
	for range 2 {
		if err := state.AnnounceAll(t.Context(), s, st.Update, agents); err != nil {
			t.Fatal(err)
		}
	}
	for i, agent := range agents {
		here := statetest.Read(t, st, func(v *state.View) (bool, error) { return v.IsPresent(agent) })
		if here != (i > 0) {
			t.Errorf("%s is present: %v", agent, here)
		}
	}
}
