package uniter

import (
	"testing"

	"bijou/agent/hook"
	"bijou/state"
	"bijou/testscripts/statetest"
)

// TestFailCrashedIsListed has two hooks fail of which nobody knows how they ended: each is
// in the unit's history.
func TestFailCrashedIsListed(t *testing.T) {
	l := newLife(t, nil)
	for _, id := range []string{"one", "two"} {
		op := state.Op{ID: id, Hook: hook.ForUnit(hook.Install)}
		statetest.Update(t, l.st, func(tx *state.Tx) error { return tx.PutOp("app/0", op) })
		if err := l.u.failCrashed(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	runs := statetest.Read(t, l.st, func(v *state.View) ([]state.HookRun, error) { return v.HookRuns("app/0") })
	if len(runs) != 2 {
		t.Errorf("the history has %+v", runs)
	}
}
