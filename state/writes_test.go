package state_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// TestWritesBringRecordsUpToDate applies the writes of each update to the records from before it, and
// compares the result with the records after it.
func TestWritesBringRecordsUpToDate(t *testing.T) {
	st := statetest.New(t)
	statetest.Pair(t, st)
	const unit = "mysql/0"
	read := func() state.Uniter {
		return statetest.Read(t, st, func(v *state.View) (state.Uniter, error) { return v.Uniter(unit) })
	}
	have := read()
	op := state.Op{ID: "1", Hook: state.Hook{Kind: "install", Relation: state.NoRelation}, Started: time.Now().UTC()}
	for _, step := range []func(tx *state.Tx) error{
		func(tx *state.Tx) error {
			return errors.Join(tx.PutOp(unit, op), tx.PutWorkflow(unit, state.Workflow{State: "installed", NextPlace: 3}))
		},
		func(tx *state.Tx) error {
			return errors.Join(tx.ClearOp(unit), tx.PutRelationState(unit, 3, state.RelationState{State: state.RelationUp}),
				tx.PutMember(unit, 3, "wordpress/0", state.MemberState{State: "in", Version: 4}),
				tx.PutMember(unit, 3, "wordpress/1", state.MemberState{Pending: "relation-joined", Place: 3}),
				tx.PutMember("mysql/1", 3, "wordpress/0", state.MemberState{State: "in"}))
		},
		func(tx *state.Tx) error { tx.RemoveMember(unit, 3, "wordpress/0"); return nil },
		func(tx *state.Tx) error {
			tx.RemoveMember(unit, 3, "wordpress/1")
			return tx.RemoveRelationState(unit, 3)
		},
	} {
		var wrote state.Writes
		statetest.Update(t, st, func(tx *state.Tx) error {
			err := step(tx)
			wrote = tx.Writes()
			return err
		})
		if err := wrote.Apply(unit, &have); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(read(), have); diff != "" {
			t.Errorf("after writing %q (-read +applied):\n%s", wrote.ChangedKeys(), diff)
		}
	}
}

func TestMembershipOf(t *testing.T) {
	type membership struct {
		Relation int
		Unit     string
		OK       bool
	}
	for key, want := range map[string]membership{
		"relations/3/members/mysql/0":  {3, "mysql/0", true},
		"relations/3/settings/mysql/0": {3, "settings/mysql/0", false},
		"relations/3":                  {3, "", false},
		"services/mysql":               {0, "", false},
	} {
		id, unit, ok := state.MembershipOf(key)
		if got := (membership{id, unit, ok}); got.OK != want.OK || ok && got != want {
			t.Errorf("%s: got %+v, want %+v", key, got, want)
		}
	}
}
