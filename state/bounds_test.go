package state_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/actions"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

// hub relates mysql to n services, with mysql/0 in every relation.
func hub(t *testing.T, st *state.State, n int) (ids []int) {
	t.Helper()
	statetest.AddService(t, st, statetest.MySQL(), 1)
	c := statetest.AddCharm(t, st, statetest.WordPress())
	for i := range n {
		name := fmt.Sprintf("blog-%d", i)
		statetest.AddServiceOf(t, st, c, name, 0)
		r := statetest.Relate(t, st, name, "mysql")
		statetest.Enter(t, st, r.ID, "mysql/0", nil)
		ids = append(ids, r.ID)
	}
	return ids
}

// TestHub checks that every change to one unit or relation of a hub fits into one transaction.
func TestHub(t *testing.T) {
	st := statetest.New(t)
	ids := hub(t, st, 200)
	statetest.Update(t, st, func(tx *state.Tx) error {
		for _, id := range ids[:50] {
			if _, err := tx.MergeSettings(id, "mysql/0", changes("ready", "true")); err != nil {
				return err
			}
		}
		return nil
	})
	failure := &state.Failure{Hook: state.Hook{Name: "x"}}
	statetest.Update(t, st, func(tx *state.Tx) error {
		return tx.PutRelationState("mysql/0", ids[7], state.RelationState{State: state.RelationError, Failure: failure})
	})
	statetest.Update(t, st, func(tx *state.Tx) error {
		_, err := actions.SetResolved(tx, "mysql/0", fmt.Sprint(ids[7]), true)
		return err
	})
	statetest.Update(t, st, func(tx *state.Tx) error {
		r, err := tx.FindRelation("mysql", "blog-17")
		if err != nil {
			return err
		}
		return tx.DestroyRelation(r.ID)
	})
	if err := st.DestroyService(t.Context(), "mysql"); err != nil {
		t.Fatal(err)
	}
	if err := state.RemoveUnit(t.Context(), st.Update, "mysql/0"); err != nil {
		t.Fatal(err)
	}
	if left := remaining(t, st); len(left) != 200 || left[0] == "mysql" {
		t.Errorf("%d are left, %q ...", len(left), left[:min(3, len(left))])
	}
}

// TestCrowdLeavesAtOnce checks that all members can leave a dying relation at the same time, and that
// the last one removes the relation and the service.
func TestCrowdLeavesAtOnce(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		units := statetest.AddService(t, st, statetest.MySQL(), 60)
		for _, u := range units {
			statetest.Enter(t, st, 0, u.Name, map[string]string{"a": "b"})
		}
		if err := st.DestroyService(t.Context(), "mysql"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for _, u := range units {
			all.Go(func() {
				if err := state.RemoveUnit(ctx, st.Update, u.Name); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if left := remaining(t, st); len(left) != 0 {
			t.Errorf("left over: %q", left)
		}
		// A sweep removes settings that did not fit into the last transaction.
		if err := sweep.Run(t.Context(), st, later()); err != nil {
			t.Fatal(err)
		}
		statetest.View(t, st, func(v *state.View) error {
			for _, u := range units {
				if _, err := v.Settings(0, u.Name); !errors.Is(err, state.ErrNotFound) {
					t.Errorf("settings of %s: %v", u.Name, err)
				}
			}
			return nil
		})
	})
}

// BenchmarkHookDone measures the commit of a hook on SQLite: settings, ports, the next step of the workflow,
// and the end of the operation.
func BenchmarkHookDone(b *testing.B) {
	st, _ := statetest.SQLite(b)
	r := statetest.Pair(b, st)
	statetest.Enter(b, st, r.ID, "mysql/0", nil)
	update := state.UpdaterFor(statetest.Claim(b, st, "0", "/m"), "unit-mysql-0")
	n := 0
	for b.Loop() {
		n++
		value := fmt.Sprint(n)
		err := update(b.Context(), func(tx *state.Tx) error {
			_, err := tx.MergeSettings(r.ID, "mysql/0", map[string]*string{"n": &value})
			return errors.Join(err,
				tx.SetPorts("mysql/0", []state.Port{{From: n, To: n, Protocol: "tcp"}}),
				tx.PutWorkflow("mysql/0", state.Workflow{State: "started", NextPlace: int64(n)}),
				tx.ClearOp("mysql/0"))
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
