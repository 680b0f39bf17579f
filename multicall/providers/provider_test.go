package providers

import (
	"testing"

	"bijou/provision/plugin"
	"bijou/state"
	"bijou/state/keys"
	"bijou/testscripts/kit/statetest"
)

// TestDamagedMachineIsPresent checks that a machine whose record does not decode counts as one that can have an
// instance.
func TestDamagedMachineIsPresent(t *testing.T) {
	st := statetest.New(t)
	if got := statetest.Read(t, st, readDemand); got == plugin.Present {
		t.Fatalf("without machines it is %s", got)
	}

	statetest.Update(t, st, func(tx *state.Tx) error { return tx.Keys().Put(keys.Machine("1"), "no record") })
	if got := statetest.Read(t, st, readDemand); got != plugin.Present {
		t.Errorf("got %s", got)
	}
}
