package state_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

func TestWatch(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		c := statetest.AddCharm(t, st, statetest.MySQL())
		statetest.AddServiceOf(t, st, c, "mysql", 11)
		statetest.AddServiceOf(t, st, c, "mysql2", 1)
		statetest.AddService(t, st, statetest.WordPress(), 1)
		r := statetest.Relate(t, st, "wordpress", "mysql")
		after := revision(t, st)
		for _, f := range []func(tx *state.Tx) error{
			func(tx *state.Tx) error { return tx.SetUnitCharm("mysql/10", "local:jammy/mysql-3") },
			func(tx *state.Tx) error { return tx.SetUnitCharm("mysql/1", "local:jammy/mysql-3") },
			func(tx *state.Tx) error {
				return tx.SetPorts("mysql/1", []state.Port{{From: 80, To: 80, Protocol: "tcp"}})
			},
			func(tx *state.Tx) error { return tx.SetExposed("mysql2", true) },
			func(tx *state.Tx) error {
				_, err := tx.SetConfig("mysql", map[string]any{"tuning": "fast"})
				return err
			},
			func(tx *state.Tx) error { return tx.EnterRelation(r.ID, "mysql/1", nil) },
			func(tx *state.Tx) error { return tx.PutWorkflow("mysql/1", state.Workflow{State: "installed"}) },
			func(tx *state.Tx) error { _, err := tx.AddUnit("mysql", state.Placement{}); return err },
		} {
			statetest.Update(t, st, f)
		}
		for _, test := range []struct {
			name  string
			scope state.Scope
			want  []string
		}{
			{"unit", state.WatchUnit("mysql/1"), []string{"units/mysql/1", "units/mysql/1/ports"}},
			{"service", state.WatchService("mysql"), []string{"services/mysql/config"}},
			{"units", state.WatchUnits("mysql"), []string{"units/mysql/10", "units/mysql/1", "units/mysql/1/ports", "units/mysql/11"}},
			{"relation", state.WatchMembers(r.ID, "mysql"), []string{"relations/2/members/mysql/1"}},
			{"uniter", state.WatchUniter("mysql/1"), []string{"uniters/mysql/1/workflow"}},
			{"machine", state.WatchMachine("0"), []string{"machines/0/units/mysql/11"}},
		} {
			got := events(t, st, after, test.scope, len(test.want))
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("%s: %s", test.name, d)
			}
		}
	})
}

// events collects n keys, and any others that arrive before a last key that it writes itself.
func events(t *testing.T, st *state.State, after int64, scope state.Scope, n int) (keys []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := st.Watch(ctx, after, scope, state.WatchEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	statetest.Update(t, st, func(tx *state.Tx) error {
		e, err := tx.Environment()
		value := e.Config[state.HookConcurrency] + "1"
		if err != nil {
			return err
		}
		return tx.SetEnvironment(map[string]*string{state.HookConcurrency: &value})
	})
	for {
		batch, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(batch) // the keys of a commit have no order
		for _, key := range batch {
			if key == "environment" {
				if len(keys) >= n {
					return keys
				}
				continue
			}
			keys = append(keys, key)
		}
	}
}

func TestWatcherEnds(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		w, err := st.Watch(t.Context(), revision(t, st), state.WatchAll())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := w.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("its context: %v", err)
		}
		w.Close()
		if _, err := w.Next(t.Context()); !errors.Is(err, state.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// TestWatchMachineAgents checks that the watch reports agents of machines, and not those of units.
func TestWatchMachineAgents(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.WordPress(), 1)
		after := revision(t, st)
		w, err := st.Watch(t.Context(), after, state.WatchMachineAgents())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		session, err := st.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, agent := range []string{"unit-wordpress-0", "machine-0"} {
			if err := state.Announce(t.Context(), session, st.Update, agent); err != nil {
				t.Fatal(err)
			}
		}
		if err := session.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, deleted := range []bool{false, true} {
			changes, err := w.Changes(t.Context())
			if err != nil || len(changes) != 1 || changes[0].Deleted != deleted {
				t.Fatalf("changes %+v, error %v", changes, err)
			}
			if machine, ok := state.AgentOf(changes[0].Key); machine != "0" || !ok {
				t.Errorf("key %q is of machine %q: %t", changes[0].Key, machine, ok)
			}
		}
	})
}
