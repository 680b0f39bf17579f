package state_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// first returns a process in one place. The names of the other functions describe how their processes differ
// from it.
func first() state.Claimant {
	return state.Claimant{
		Holder: state.Holder{Host: "h1", Folder: "/env/machines/0", Name: "one", Boot: "b1", PIDNamespace: "p1", PID: 100, Start: "5"},
		Lives:  func(state.Holder) bool { return false },
	}
}

func another(change func(c *state.Claimant)) state.Claimant {
	c := first()
	c.PID, c.Start = 200, "9"
	change(&c)
	return c
}

// TestWhoMayTakeAClaim checks for various processes whether they can take the claim from the first process.
func TestWhoMayTakeAClaim(t *testing.T) {
	for _, test := range []struct {
		name string
		by   state.Claimant
		want string // the text of the refusal; empty if the claim is granted immediately
	}{
		{"the same process, after exec", first(), ""},
		{"the next process, the first is gone", another(func(*state.Claimant) {}), ""},
		{"the next process, the first lives", another(func(c *state.Claimant) { c.Lives = func(state.Holder) bool { return true } }),
			`the claim is held by process 100 of /env/machines/0 on host "one" since`},
		{"after a reboot", another(func(c *state.Claimant) { c.Boot = "b2" }), ""},
		{"a copy of the folder", another(func(c *state.Claimant) { c.Folder = "/copy/machines/0" }),
			`the claim is held by process 100 of /env/machines/0 on host "one" since`},
		{"another host", another(func(c *state.Claimant) { c.Host, c.Name = "h2", "two" }),
			`the claim is held by process 100 of /env/machines/0 on host "one" since`},
	} {
		take := func(t *testing.T, st *state.State) {
			if _, err := st.TakeClaim(t.Context(), "0", first()); err != nil {
				t.Fatal(err)
			}
			_, err := st.TakeClaim(t.Context(), "0", test.by)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("%s: %v", test.name, err)
			case test.want != "" && (!errors.Is(err, state.ErrClaimed) || !strings.HasPrefix(err.Error(), test.want)):
				t.Errorf("%s: %v, want %q", test.name, err, test.want)
			}
		}
		statetest.Each(t, take)
		synctest.Test(t, func(t *testing.T) {
			st, began := statetest.New(t), time.Now()
			if take(t, st); time.Since(began) > 0 {
				t.Errorf("%s: it waited for %s", test.name, time.Since(began))
			}
		})
	}
}

// TestClonedHost lets two boots of the same disk claim a machine. The earlier boot must not get the claim
// back.
func TestClonedHost(t *testing.T) {
	st := statetest.New(t)
	clone := another(func(c *state.Claimant) { c.Boot = "b2" })
	for _, by := range []state.Claimant{first(), clone} {
		if _, err := st.TakeClaim(t.Context(), "0", by); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.TakeClaim(t.Context(), "0", first()); !errors.Is(err, state.ErrClaimed) || !strings.Contains(err.Error(), "two hosts have the machine-id h1") {
		t.Errorf("got %v", err)
	}
}

// TestHolderThatCannotBeSeen checks a holder in another PID namespace. Whether it still holds the claim
// depends on its session.
func TestHolderThatCannotBeSeen(t *testing.T) {
	for _, lives := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			st := statetest.New(t)
			old, err := st.TakeClaim(t.Context(), "0", first())
			if err != nil {
				t.Fatal(err)
			}
			s, err := st.NewSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := state.Announce(t.Context(), s, state.Under(old), "machine-0"); err != nil {
				t.Fatal(err)
			}
			if !lives {
				s.Close(t.Context())
			}
			began := time.Now()
			_, err = st.TakeClaim(t.Context(), "0", another(func(c *state.Claimant) { c.PIDNamespace = "p2" }))
			if lives != errors.Is(err, state.ErrClaimed) || !lives && err != nil {
				t.Errorf("the holder lives: %v, and the claimant got %v", lives, err)
			}
			if took := time.Since(began); took < state.SessionTTL {
				t.Errorf("it waited for %s only", took)
			}
			s.Close(t.Context())
		})
	}
}

// TestClaimFences checks that an agent whose claim was taken cannot commit, whether that happened
// before or during its update.
func TestClaimFences(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.MySQL(), 1)
		put := func(c *state.Claim, value string, meanwhile func()) error {
			return state.UpdaterFor(c, "unit-mysql-0")(t.Context(), func(tx *state.Tx) error {
				meanwhile()
				return tx.ChangeWorkflow("mysql/0", func(now *state.Workflow) { *now = state.Workflow{State: value} })
			})
		}
		nothing := func() {}
		old, err := st.TakeClaim(t.Context(), "0", first())
		if err != nil {
			t.Fatal(err)
		}
		if err := put(old, "installed", nothing); err != nil {
			t.Fatal(err)
		}
		var heir *state.Claim
		take := func() {
			if heir == nil {
				if heir, err = st.TakeClaim(t.Context(), "0", another(func(*state.Claimant) {})); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 2 {
			if err := put(old, "stopped", take); !errors.Is(err, state.ErrClaimLost) {
				t.Errorf("the old agent: %v", err)
			}
		}
		if err := put(heir, "started", nothing); err != nil {
			t.Errorf("the new agent: %v", err)
		}
		if err := old.Watch(t.Context()); !errors.Is(err, state.ErrClaimLost) || !strings.Contains(err.Error(), "process 200") {
			t.Errorf("the old agent learns: %v", err)
		}
		w := statetest.Read(t, st, func(v *state.View) (state.Workflow, error) { return v.Workflow("mysql/0") })
		if w.State != "started" {
			t.Errorf("state %q", w.State)
		}
	})
}

// TestClaimOutlivesTheSession checks that an agent can commit without a session.
func TestClaimOutlivesTheSession(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 1)
	c := statetest.Claim(t, st, "0", "/m")
	s, err := st.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(state.Announce(t.Context(), s, state.Under(c), "unit-mysql-0"), s.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	err = state.UpdaterFor(c, "unit-mysql-0")(t.Context(), func(tx *state.Tx) error {
		return tx.ChangeWorkflow("mysql/0", func(now *state.Workflow) { *now = state.Workflow{State: "started"} })
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAgentOfARemovedUnit(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 1)
	update := state.UpdaterFor(statetest.Claim(t, st, "0", "/m"), "unit-mysql-0")
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyUnit("mysql/0") })
	if err := state.RemoveUnit(t.Context(), update, "mysql/0"); err != nil {
		t.Fatal(err)
	}
	err := update(t.Context(), func(tx *state.Tx) error {
		return tx.ChangeWorkflow("mysql/0", func(now *state.Workflow) { *now = state.Workflow{State: "x"} })
	})
	if !errors.Is(err, state.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestAssignedClaim checks a claim that an operator assigns to the place to which the machine was moved.
func TestAssignedClaim(t *testing.T) {
	st := statetest.New(t)
	old, err := st.TakeClaim(t.Context(), "0", first())
	if err != nil {
		t.Fatal(err)
	}
	moved := another(func(c *state.Claimant) { c.Folder = "/moved/machines/0" })
	statetest.Update(t, st, func(tx *state.Tx) error {
		return tx.ReassignClaim("0", &state.Holder{Host: moved.Host, Folder: moved.Folder})
	})
	if err := old.Watch(t.Context()); !errors.Is(err, state.ErrClaimLost) {
		t.Errorf("the old agent: %v", err)
	}
	if _, err := st.TakeClaim(t.Context(), "0", first()); !errors.Is(err, state.ErrClaimed) {
		t.Errorf("the old place: %v", err)
	}
	if _, err := st.TakeClaim(t.Context(), "0", moved); err != nil {
		t.Errorf("the new place: %v", err)
	}
}

// TestClaimOfAnotherInstance checks the claim after the provider has started a new instance of the
// machine.
func TestClaimOfAnotherInstance(t *testing.T) {
	for _, test := range []struct {
		name, old string
		claimed   bool // whether the new instance has already claimed the machine
		free      bool
	}{
		{"the same", "i-2", false, false},
		{"another", "i-1", false, true},
		{"another, of the same place", "i-1", true, false},
		{"none was recorded", "", false, true},
		{"none was recorded, and one lives that was started by hand", "", false, false},
	} {
		st := statetest.New(t)
		statetest.Update(t, st, func(tx *state.Tx) error {
			_, err := tx.AddMachine(state.Machine{})
			return errors.Join(err, tx.SetStarted("1", test.old, state.Addresses{}))
		})
		if _, err := st.TakeClaim(t.Context(), "1", first()); err != nil {
			t.Fatal(err)
		}
		epoch := statetest.Read(t, st, func(v *state.View) (int64, error) { return v.ClaimEpoch("1") })
		if strings.Contains(test.name, "by hand") {
			statetest.Session(t, st, "machine-1")
		}
		if test.claimed {
			if _, err := st.TakeClaim(t.Context(), "1", another(func(*state.Claimant) {})); err != nil {
				t.Fatal(err)
			}
		}
		statetest.Update(t, st, func(tx *state.Tx) error {
			return errors.Join(tx.FreeClaim("1", "i-2", epoch), tx.SetStarted("1", "i-2", state.Addresses{}))
		})
		_, err := st.TakeClaim(t.Context(), "1", another(func(c *state.Claimant) { c.Host = "h2" }))
		if free := err == nil; free != test.free {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestFirstClaimOfAnInstance checks that a claim that was taken before the instance is recorded remains valid
// after that.
func TestFirstClaimOfAnInstance(t *testing.T) {
	st := statetest.New(t)
	statetest.Update(t, st, func(tx *state.Tx) error { _, err := tx.AddMachine(state.Machine{}); return err })
	c, err := st.TakeClaim(t.Context(), "1", first())
	if err != nil {
		t.Fatal(err)
	}
	statetest.Update(t, st, func(tx *state.Tx) error {
		return errors.Join(tx.FreeClaim("1", "i-1", 0), tx.SetStarted("1", "i-1", state.Addresses{}))
	})
	if err := state.Under(c)(t.Context(), func(tx *state.Tx) error { return tx.SetMachineStatus("1", state.MachineRunning, "") }); err != nil {
		t.Error(err)
	}
}

// TestJoinedClaim checks a unit's agent that runs beside the machine's agent while the machine's agent
// restarts.
func TestJoinedClaim(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 1)
	beside := another(func(c *state.Claimant) { c.PID = 300 })
	joined, err := st.JoinClaim(t.Context(), "0", beside)
	if err != nil {
		t.Fatal(err)
	}
	write := func() error {
		return state.Under(joined)(t.Context(), func(tx *state.Tx) error {
			return tx.ChangeWorkflow("mysql/0", func(w *state.Workflow) { w.NextPlace++ })
		})
	}
	for _, by := range []state.Claimant{first(), another(func(*state.Claimant) {})} {
		if _, err := st.TakeClaim(t.Context(), "0", by); err != nil {
			t.Fatal(err)
		}
		if err := write(); err != nil {
			t.Errorf("after process %d: %v", by.PID, err)
		}
	}
	if _, err := st.JoinClaim(t.Context(), "0", another(func(c *state.Claimant) { c.Folder = "/copy" })); !errors.Is(err, state.ErrClaimed) {
		t.Errorf("from a copy: %v", err)
	}
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.ReassignClaim("0", &state.Holder{Host: "h2"}) })
	if err := write(); !errors.Is(err, state.ErrClaimLost) {
		t.Errorf("after the place has lost it: %v", err)
	}
}

// TestClaimOfAnEarlierStore restores the store to a time before the claim was taken. The former holder must
// take the claim again, even if several of its agents notice the restoration at the same time.
func TestClaimOfAnEarlierStore(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		c, err := st.TakeClaim(t.Context(), "0", first())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		watched := make(chan error)
		go func() { watched <- c.Watch(ctx) }()
		for n := range 10 {
			statetest.Update(t, st, func(tx *state.Tx) error { return tx.DropClaim("0") })
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					err := state.Under(c)(t.Context(), func(tx *state.Tx) error {
						return tx.SetMachineStatus("0", state.MachineRunning, fmt.Sprint(n, i))
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		cancel()
		if err := <-watched; err != nil {
			t.Errorf("it still holds the claim: %v", err)
		}
	})
}
