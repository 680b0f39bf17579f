package state_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/store"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

// TestMachineForgetsItsOwnStorage checks that the removal of a machine removes only the storage that is on
// the machine, even if its agent has listed other storage.
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

// TestUnitIsRemovedWhateverStorageItLists checks that a unit and its machine can be removed no matter what
// the unit's agent has written into the unit's list of storage.
func TestUnitIsRemovedWhateverStorageItLists(t *testing.T) {
	own := make([]string, 600)
	for i := range own {
		own[i] = fmt.Sprintf("own/%d", i)
	}

	for name, c := range map[string]struct{ has, lists []string }{
		"storage that is gone": {own[:1], []string{"own/0", "gone/0"}},
		"a storage twice":      {own[:1], []string{"own/0", "own/0"}},
		"another's storage":    {own[:1], []string{"others/0", "own/0"}},
		"very many":            {own, own},
		"none of very many":    {own, nil},
	} {
		t.Run(name, func(t *testing.T) {
			statetest.Each(t, func(t *testing.T, st *state.State) {
				unit, other := addUnitWithMachine(t, st, statetest.MySQL(), "mysql"), addUnitWithMachine(t, st, statetest.WordPress(), "wordpress")
				putStorages(t, st, unit.Machine, unit.Name, c.has...)
				putStorages(t, st, other.Machine, other.Name, "others/0")
				listStorage(t, st, unit.Name, c.lists...)

				check(t, st.DestroyMachine(t.Context(), unit.Machine, true))
				left := statetest.Read(t, st, (*state.View).Storages)
				if len(left) != 1 || left[0].Unit != other.Name {
					t.Errorf("left is %v", left)
				}
				statetest.View(t, st, func(v *state.View) error {
					if _, err := v.Unit(unit.Name); !errors.Is(err, state.ErrNotFound) {
						t.Errorf("the unit is still there: %v", err)
					}
					if _, err := v.Machine(unit.Machine); !errors.Is(err, state.ErrNotFound) {
						t.Errorf("its machine is still there: %v", err)
					}
					return nil
				})
			})
		})
	}
}

// addUnitWithMachine adds a service with one unit, which has its own machine.
func addUnitWithMachine(t *testing.T, st *state.State, f statetest.Files, service string) state.Unit {
	t.Helper()
	statetest.AddService(t, st, f, 0)
	units, err := st.AddUnits(t.Context(), service, 1, state.Placement{Machine: state.PlaceNew})
	check(t, err)
	return units[0]
}

// listStorage writes the list of a unit's storage, as the unit's agent could. It also records that the unit
// has begun.
func listStorage(t *testing.T, st *state.State, unit string, ids ...string) {
	t.Helper()
	statetest.Update(t, st, func(tx *state.Tx) error {
		return errors.Join(tx.Keys().Put(keys.UnitStorage(unit), ids), tx.PutWorkflow(unit, state.Workflow{State: "started", Charm: "x"}))
	})
}

// putStorages adds a unit's storage to the list of its machine, as the machine's agent could.
func putStorages(t *testing.T, st *state.State, machine, unit string, ids ...string) {
	t.Helper()
	for batch := range slices.Chunk(ids, 128) {
		statetest.Update(t, st, func(tx *state.Tx) error {
			has, err := tx.MachineStorage(machine)
			if err != nil {
				return err
			}
			for _, id := range batch {
				s := state.Storage{Machine: machine, Unit: unit, Life: state.Alive, State: state.StoragePending, Made: true}
				if err := tx.Keys().Put(keys.Storage(id), s); err != nil {
					return err
				}
				has.All = append(has.All, id)
			}
			return tx.Keys().Put(keys.MachineStorage(machine), has)
		})
	}
}

// TestUnitLeavesOthersStorage checks that the removal of a unit releases only the unit's own storage, even if
// its agent has listed other storage.
func TestUnitLeavesOthersStorage(t *testing.T) {
	st := statetest.New(t)
	units := statetest.AddService(t, st, statetest.MySQL(), 2)
	putStorages(t, st, units[0].Machine, units[0].Name, "data/0")
	putStorages(t, st, units[1].Machine, units[1].Name, "data/1")
	listStorage(t, st, units[0].Name, "data/0", "data/1")
	listStorage(t, st, units[1].Name, "data/1")
	check(t, st.ForceRemoveUnit(t.Context(), units[0].Name))

	for _, s := range statetest.Read(t, st, (*state.View).Storages) {
		if want := map[string]string{"data/0": "", "data/1": units[1].Name}[s.ID]; s.Unit != want {
			t.Errorf("%s is with unit %q, want %q", s.ID, s.Unit, want)
		}
	}
	left := statetest.Read(t, st, func(v *state.View) ([]state.Storage, error) { return v.UnitStorages(units[1].Name) })
	if len(left) != 1 || left[0].ID != "data/1" {
		t.Errorf("the other unit has %v", left)
	}
}

// TestStorageIsBounded checks that operators cannot give a unit more storage than its agent can list.
func TestStorageIsBounded(t *testing.T) {
	st := statetest.New(t)
	files := statetest.Meta("store", "storage:\n  data:\n    type: filesystem\n    multiple: {range: 0+}\n")
	unit := statetest.AddService(t, st, files, 1)[0]
	add := func(n int) error {
		return st.Update(t.Context(), func(tx *state.Tx) error {
			_, err := tx.AddStorage(unit.Name, "data", charm.Directive{Count: n})
			return err
		})
	}
	check(t, add(state.MaxUnitStorages))
	if err := add(1); !errors.Is(err, state.ErrNoStorage) {
		t.Errorf("one more: %v", err)
	}

	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DetachStorage("data/0") })
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.ReleaseStorage("data/0") })
	check(t, add(1))
}

// TestDamagedStorageRemainsRemovable checks that a record or list of storage that does not decode keeps neither
// its unit nor its machine from being removed, and leaves nothing behind.
func TestDamagedStorageRemainsRemovable(t *testing.T) {
	for name, damage := range map[string]func(u state.Unit) string{
		"a record":           func(state.Unit) string { return keys.Storage("data/0") },
		"the unit's list":    func(u state.Unit) string { return keys.UnitStorage(u.Name) },
		"the machine's list": func(u state.Unit) string { return keys.MachineStorage(u.Machine) },
	} {
		t.Run(name, func(t *testing.T) {
			st := statetest.New(t)
			unit := addUnitWithMachine(t, st, statetest.MySQL(), "mysql")
			putStorages(t, st, unit.Machine, unit.Name, "data/0", "data/1")
			listStorage(t, st, unit.Name, "data/0", "data/1")
			// The unit has a storage whose removal was ordered.
			statetest.Update(t, st, func(tx *state.Tx) error { return tx.MarkStorageMade("data/1") })
			statetest.Update(t, st, func(tx *state.Tx) error { return tx.RemoveStorage("data/1", true) })
			putDamaged(t, st, damage(unit))

			statetest.Read(t, st, func(v *state.View) ([]state.Storage, error) { return v.UnitStorages(unit.Name) })
			check(t, st.ForceRemoveUnit(t.Context(), unit.Name))
			for _, s := range statetest.Read(t, st, (*state.View).Storages) {
				if s.Unit != "" {
					t.Errorf("%s is still with unit %s", s.ID, s.Unit)
				}
			}

			check(t, st.DestroyMachine(t.Context(), unit.Machine, true))
			check(t, sweep.Run(t.Context(), st, time.Now()))
			statetest.View(t, st, func(v *state.View) error {
				left, err := v.Keys().List(keys.Storages)
				if len(left) > 0 {
					t.Errorf("left is %v", left)
				}
				return err
			})
		})
	}
}

// TestDamagedStorageStopsItsUnit checks that who acts on a unit's storage gets an error if a record or the list does
// not decode: hooks must not run without storage, and no command may say that it removes storage that it cannot
// read.
func TestDamagedStorageStopsItsUnit(t *testing.T) {
	for _, damaged := range []string{keys.Storage("data/0"), keys.UnitStorage("mysql/0")} {
		t.Run(damaged, func(t *testing.T) {
			st := statetest.New(t)
			unit := addUnitWithMachine(t, st, statetest.MySQL(), "mysql")
			putStorages(t, st, unit.Machine, unit.Name, "data/0", "data/1")
			listStorage(t, st, unit.Name, "data/0", "data/1")
			putDamaged(t, st, damaged)

			_, err := state.Read(t.Context(), st, func(v *state.View) ([]state.Storage, error) { return v.OwnStorages(unit.Name) })
			if !errors.Is(err, keyspace.ErrDamaged) {
				t.Errorf("reading gives %v", err)
			}
			err = st.Update(t.Context(), func(tx *state.Tx) error { return tx.RemoveUnitStorage(unit.Name) })
			if !errors.Is(err, keyspace.ErrDamaged) {
				t.Errorf("removing gives %v", err)
			}
		})
	}
}

// TestForgetDamagedStorage checks that an operator can remove the record of storage that does not decode, and
// that its machine no longer lists the storage.
func TestForgetDamagedStorage(t *testing.T) {
	st := statetest.New(t)
	unit := addUnitWithMachine(t, st, statetest.MySQL(), "mysql")
	putStorages(t, st, unit.Machine, unit.Name, "data/0", "data/1")
	putDamaged(t, st, keys.Storage("data/0"))

	statetest.Update(t, st, func(tx *state.Tx) error { return tx.ForgetStorage("data/0") })
	statetest.View(t, st, func(v *state.View) error {
		if _, err := v.Storage("data/0"); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("the record is still there: %v", err)
		}
		list, err := v.MachineStorage(unit.Machine)
		if !slices.Equal(list.All, []string{"data/1"}) {
			t.Errorf("the machine lists %v, want data/1", list.All)
		}
		return err
	})
}

// putDamaged writes a record that is JSON but does not decode.
func putDamaged(t *testing.T, st *state.State, key string) {
	t.Helper()
	_, err := st.Store().Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: key, Value: []byte(`"damaged"`)}}})
	check(t, err)
}

// TestStorageOfGoneMachinesIsSwept checks that storage that its machine has not listed is swept after the
// machine's removal.
func TestStorageOfGoneMachinesIsSwept(t *testing.T) {
	st := statetest.New(t)
	unit := addUnitWithMachine(t, st, statetest.MySQL(), "mysql")
	putStorages(t, st, unit.Machine, unit.Name, "data/0")
	statetest.Update(t, st, func(tx *state.Tx) error {
		return tx.Keys().Put(keys.Storage("data/1"), state.Storage{Machine: "77", Unit: "gone/0", Life: state.Alive})
	})
	check(t, sweep.Run(t.Context(), st, time.Now()))

	left := statetest.Read(t, st, (*state.View).Storages)
	if len(left) != 1 || left[0].ID != "data/0" {
		t.Errorf("left is %v, want data/0", left)
	}
}
