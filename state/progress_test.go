package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/testscripts/statetest"
)

func TestProgress(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 0)
	var told []state.Progress
	ctx := state.WithProgress(t.Context(), func(p state.Progress) { told = append(told, p) })
	if units, err := st.AddUnits(ctx, "mysql", 12, state.Placement{}); err != nil || len(units) != 12 {
		t.Fatal(len(units), err)
	}
	machines, err := st.AddMachines(ctx, 11, state.MachineSpec{Series: "jammy"})
	if err != nil || len(machines) != 11 || machines[10].ID != "11" || machines[10].Series != "jammy" {
		t.Fatal(machines, err)
	}
	want := []state.Progress{
		{"units of mysql added", 0, 12}, {"units of mysql added", 10, 12}, {"units of mysql added", 12, 12},
		{"machines added", 0, 11}, {"machines added", 10, 11}, {"machines added", 11, 11},
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}
