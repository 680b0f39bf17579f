package status_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/status"
	"bijou/testscripts/kit/statetest"
)

// TestRefreshed checks that a refreshed status is equal to one that is read from scratch, for every kind of
// change.
func TestRefreshed(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		r := statetest.Pair(t, st)
		options := status.Options{Now: time.Now()}
		read := func() status.Status {
			return statetest.Read(t, st, func(v *state.View) (status.Status, error) { return status.Read(v, options) })
		}
		shown := read()
		w, err := st.Watch(t.Context(), statetest.Read(t, st, (*state.View).Revision), state.WatchAll())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		random := rand.New(rand.NewPCG(1, 2))
		alone := 0
		for step := range 120 {
			statetest.Update(t, st, func(tx *state.Tx) error { return changeSomething(tx, random.IntN(8), r.ID, step) })
			changes, err := w.Changes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var all bool
			statetest.View(t, st, func(v *state.View) (err error) {
				_, all, err = shown.Refresh(v, options, changes)
				return err
			})
			if !all {
				alone++
			}
			if diff := cmp.Diff(read(), shown); diff != "" {
				t.Fatalf("after step %d, which changed %v:\n%s", step, changes, diff)
			}
		}
		if alone < 60 {
			t.Errorf("%d of 120 steps were read alone", alone)
		}
	})
}

// changeSomething makes a change of the given kind, which is different in each step.
func changeSomething(tx *state.Tx, kind, relation, step int) error {
	unit, message := []string{"mysql/0", "wordpress/0"}[step%2], fmt.Sprint("step ", step)
	failure := &state.Failure{Message: message, Hook: state.Hook{Name: "install"}, Since: time.Unix(int64(step), 0).UTC()}
	// Rewritten records are read first, so that they keep members that this binary does not know.
	for _, key := range []string{keys.RelationState(unit, relation), keys.MemberState(unit, relation, "mysql/9")} {
		if _, _, err := tx.Keys().Get(key); err != nil {
			return err
		}
	}

	switch kind {
	case 0:
		return tx.ChangeWorkflow(unit, func(w *state.Workflow) { *w = state.Workflow{State: "started", NextPlace: int64(step)} })
	case 1:
		return tx.ChangeWorkflow(unit, func(w *state.Workflow) { *w = state.Workflow{State: "install-error", Failure: failure} })
	case 2:
		return tx.PutOp(unit, state.Op{ID: message, Hook: state.Hook{Name: "start", Relation: state.NoRelation}})
	case 3:
		return tx.PutRelationState(unit, relation, state.RelationState{State: state.RelationError, Failure: failure})
	case 4:
		return tx.PutRelationState(unit, relation, state.RelationState{State: state.RelationUp, Name: message})
	case 5:
		return tx.SetUnitStatus(unit, state.WorkloadStatus{Status: "active", Message: message})
	case 6:
		_, err := tx.AddUnit("wordpress", state.Placement{})
		return err
	}
	if err := tx.DestroyUnit(fmt.Sprintf("wordpress/%d", 1+step/12)); state.IgnoreNotFound(err) != nil {
		return err
	}
	return tx.PutMember(unit, relation, "mysql/9", state.MemberState{Version: int64(step)})
}
