package state_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

func TestUniterRecords(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		r := statetest.Pair(t, st)
		op := state.Op{ID: "1", Hook: state.Hook{Kind: "install", Name: "install", Relation: state.NoRelation}, Expect: "installed"}
		want := state.Uniter{
			Op: &op, Workflow: state.Workflow{State: "started", NextPlace: 4},
			Relations: map[int]state.RelationState{r.ID: {State: state.RelationUp}},
			Members: map[int]map[string]state.MemberState{r.ID: {
				"mysql/1": {State: "joined", Seen: 2}, "mysql/10": {Pending: "joined", Place: 3},
			}},
		}
		statetest.Update(t, st, func(tx *state.Tx) error {
			return errors.Join(
				tx.PutOp("wordpress/0", op), tx.PutWorkflow("wordpress/0", want.Workflow),
				tx.PutRelationState("wordpress/0", r.ID, want.Relations[r.ID]),
				tx.PutMember("wordpress/0", r.ID, "mysql/1", want.Members[r.ID]["mysql/1"]),
				tx.PutMember("wordpress/0", r.ID, "mysql/10", want.Members[r.ID]["mysql/10"]),
			)
		})
		get := func() state.Uniter {
			return statetest.Read(t, st, func(v *state.View) (state.Uniter, error) { return v.Uniter("wordpress/0") })
		}
		if d := cmp.Diff(want, get()); d != "" {
			t.Error(d)
		}
		statetest.Update(t, st, func(tx *state.Tx) error {
			tx.RemoveMember("wordpress/0", r.ID, "mysql/1")
			return tx.ClearOp("wordpress/0")
		})
		want.Op = nil
		delete(want.Members[r.ID], "mysql/1")
		if d := cmp.Diff(want, get()); d != "" {
			t.Error(d)
		}
	})
}
