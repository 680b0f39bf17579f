package state_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

func TestPresence(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.MySQL(), 1)
		present := func(agent string) bool {
			return statetest.Read(t, st, func(v *state.View) (bool, error) { return v.IsPresent(agent) })
		}
		s := statetest.Session(t, st, "machine-0", "unit-mysql-0")
		if !present("machine-0") || !present("unit-mysql-0") || present("unit-mysql-1") {
			t.Error("announced agents are not present, or others are")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if present("machine-0") {
			t.Error("present after its session")
		}
		select {
		case <-s.Done():
		default:
			t.Error("a closed session is not done")
		}
		if err := state.Announce(t.Context(), s, st.Update, "machine-0"); !errors.Is(err, state.ErrSessionLost) {
			t.Errorf("announced by a closed session: %v", err)
		}
	})
}

func TestAnnounceForWhatIsGone(t *testing.T) {
	st := statetest.New(t)
	s := statetest.Session(t, st)
	for _, agent := range []string{"machine-7", "unit-mysql-0"} {
		if err := state.Announce(t.Context(), s, st.Update, agent); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%s: %v", agent, err)
		}
	}
}

func TestLeadership(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		first := statetest.Session(t, st)
		lead, err := state.Campaign(t.Context(), first, "provisioner")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := state.Campaign(t.Context(), first, "provisioner"); err == nil {
			t.Error("a second campaign of one session for one thing was let in")
		}
		second := statetest.Session(t, st)
		var heir *state.Leadership
		var waiting sync.WaitGroup
		waiting.Go(func() { heir, err = state.Campaign(t.Context(), second, "provisioner") })
		add := func(l *state.Leadership) error {
			return state.Under(l)(t.Context(), func(tx *state.Tx) error { _, err := tx.AddMachine(state.Machine{}); return err })
		}
		if err := add(lead); err != nil {
			t.Errorf("the leader's write: %v", err)
		}
		if err := lead.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		waiting.Wait()
		if err != nil {
			t.Fatal(err)
		}
		<-lead.Done()
		if err := add(lead); !errors.Is(err, state.ErrSessionLost) {
			t.Errorf("the deposed leader's write: %v", err)
		}
		if err := add(heir); err != nil {
			t.Errorf("the heir's write: %v", err)
		}
		if err := second.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-heir.Done()
		if again, err := state.Campaign(t.Context(), first, "provisioner"); err != nil {
			t.Error(err)
		} else if err := add(again); err != nil {
			t.Error(err)
		}
	})
}

// TestLeaderDeposedInMidUpdate checks a leader that loses the leadership between its read and its commit.
func TestLeaderDeposedInMidUpdate(t *testing.T) {
	st := statetest.New(t)
	s := statetest.Session(t, st)
	lead, err := state.Campaign(t.Context(), s, "provisioner")
	if err != nil {
		t.Fatal(err)
	}
	err = state.Under(lead)(t.Context(), func(tx *state.Tx) error {
		s.Close(t.Context())
		_, err := tx.AddMachine(state.Machine{})
		return err
	})
	if !errors.Is(err, state.ErrSessionLost) {
		t.Errorf("got %v", err)
	}
}

func TestCampaignEndsWithItsContextAndItsSession(t *testing.T) {
	st := statetest.New(t)
	if _, err := state.Campaign(t.Context(), statetest.Session(t, st), "x"); err != nil {
		t.Fatal(err)
	}
	s := statetest.Session(t, st)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := state.Campaign(ctx, s, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("its context: %v", err)
	}
	time.AfterFunc(10*time.Millisecond, func() { s.Close(t.Context()) })
	if _, err := state.Campaign(t.Context(), s, "x"); !errors.Is(err, state.ErrSessionLost) {
		t.Errorf("its session: %v", err)
	}
}

// TestAbandonedSessionExpires checks that the agents and leaderships of a killed process end after the
// TTL.
func TestAbandonedSessionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := statetest.New(t)
		dead := statetest.Share(st)
		s, err := dead.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := state.Announce(t.Context(), s, st.Update, "machine-0"); err != nil {
			t.Fatal(err)
		}
		if _, err := state.Campaign(t.Context(), s, "provisioner"); err != nil {
			t.Fatal(err)
		}
		statetest.Abandon(dead)
		heir := statetest.Session(t, st)
		began := time.Now()
		if _, err := state.Campaign(t.Context(), heir, "provisioner"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != state.SessionTTL {
			t.Errorf("took over after %v", took)
		}
		if statetest.Read(t, st, func(v *state.View) (bool, error) { return v.IsPresent("machine-0") }) {
			t.Error("the dead agent is present")
		}
		heir.Close(t.Context())
		s.Close(context.Background())
	})
}
