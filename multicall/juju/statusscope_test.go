package juju

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/status"
	"bijou/state/store"
	"bijou/testscripts/statetest"
)

// TestScopeShowsTheSame holds what is read for patterns against all of the status, from
// which the same is chosen.
func TestScopeShowsTheSame(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 12)
	statetest.AddService(t, st, statetest.WordPress(), 3)
	statetest.AddServiceOf(t, st, statetest.AddCharm(t, st, statetest.Meta("mysql-backup", "name: mysql-backup\nsummary: s\ndescription: d\n")), "mysql-backup", 20)
	r := statetest.Relate(t, st, "wordpress", "mysql")
	statetest.Session(t, st, state.MachineAgent("0"), state.UnitAgent("mysql/1"), state.UnitAgent("mysql/11"), state.UnitAgent("mysql-backup/1"))
	statetest.Update(t, st, func(tx *state.Tx) error {
		var errs []error
		for _, unit := range []string{"mysql/1", "mysql/11", "mysql/2", "mysql-backup/1"} {
			errs = append(errs, tx.PutWorkflow(unit, state.Workflow{State: "started", Charm: "local:jammy/mysql-0"}))
		}
		return errors.Join(append(errs, tx.PutRelationState("mysql/1", r.ID, state.RelationState{State: state.RelationUp}))...)
	})
	read := func(patterns []string) (status.Status, error) {
		return state.Read(t.Context(), st, func(v *state.View) (status.Status, error) {
			return status.Read(v, status.Options{Now: time.Unix(0, 0), Scope: scopeOf(patterns)})
		})
	}
	if _, err := st.Store().Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "machines/0", Delete: true}}}); err != nil {
		t.Fatal(err) // as a forced removal may leave it: its units are there still
	}
	whole, err := read(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, patterns := range [][]string{
		{"mysql"}, {"mysql/1"}, {"mysql/1*"}, {"mysql*"}, {"wordpress"}, {"wordpress/0", "mysql/2"}, {"*/1"}, {"mysql-backup"}, {"mysql/99"}, {"nothing"}, {"my[s]ql/11"},
	} {
		part, err := read(patterns)
		if err != nil {
			t.Fatal(err)
		}
		want, got := selectStatus(whole, patterns), selectStatus(part, patterns)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(selection{})); diff != "" {
			t.Errorf("%q (-all +what is read):\n%s", patterns, diff)
		}
	}
	one, err := read([]string{"mysql/1"})
	if err != nil {
		t.Fatal(err)
	}
	if units := one.Services["mysql"].Units; len(units) != 1 || len(one.Services["mysql-backup"].Units) != 0 || len(one.Services["wordpress"].Units) != 3 {
		t.Errorf("for mysql/1 alone %d of its service are read", len(units))
	}
}
