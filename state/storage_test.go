package state_test

import (
	"errors"
	"testing"

	"bijou/state"
	"bijou/state/keys"
	"bijou/testscripts/kit/statetest"
)

// TestMachineForgetsItsOwnStorage checks that removing a machine removes only the storage that is on
// it, whatever its agent has listed.
func TestMachineForgetsItsOwnStorage(t *testing.T) {
	st := statetest.New(t)
	var id string
	statetest.Update(t, st, func(tx *state.Tx) error {
		m, err := tx.AddMachine(state.Machine{})
		if err != nil {
			return err
		}

		id = m.ID
		own := tx.Keys().Put(keys.Storage("data/0"), state.Storage{Machine: id, Life: state.Alive})
		others := tx.Keys().Put(keys.Storage("data/1"), state.Storage{Machine: "0", Life: state.Alive})
		list := tx.Keys().Put(keys.MachineStorage(id), state.MachineStorage{All: []string{"data/0", "data/1", "data/2"}})
		return errors.Join(own, others, list)
	})
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.RemoveMachine(id) })

	statetest.View(t, st, func(v *state.View) error {
		kv, err := v.Keys().GetKV(keys.MachineStorage(id))
		if kv.Revision != 0 {
			t.Errorf("its list is still there: %s", kv.Value)
		}
		return err
	})
	all := statetest.Read(t, st, (*state.View).Storages)
	if len(all) != 1 || all[0].ID != "data/1" {
		t.Errorf("left is %v, want data/1", all)
	}
}
