package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/keyspace"
	"bijou/testscripts/kit/statetest"
)

func TestProgress(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 0)
	var told []keyspace.Steps
	ctx := t.Context()
	st.SetProgress(func(p keyspace.Steps) { told = append(told, p) })
	if units, err := st.AddUnits(ctx, "mysql", 12, state.Placement{}); err != nil || len(units) != 12 {
		t.Fatal(len(units), err)
	}
	machines, err := st.AddMachines(ctx, 11, state.Machine{Series: "jammy"})
	if err != nil || len(machines) != 11 || machines[10].ID != "11" || machines[10].Series != "jammy" {
		t.Fatal(machines, err)
	}
	want := []keyspace.Steps{
		{What: "units of mysql added", Done: 0, Total: 12}, {What: "units of mysql added", Done: 10, Total: 12}, {What: "units of mysql added", Done: 12, Total: 12},
		{What: "machines added", Done: 0, Total: 11}, {What: "machines added", Done: 10, Total: 11}, {What: "machines added", Done: 11, Total: 11},
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}
