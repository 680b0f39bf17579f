package state

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// This file has the record of a storage, and what adds one. storagelife.go attaches, detaches and removes storage.

// Storage is one instance of a charm's storage. It is a directory on a machine, and at most one unit has it
// at a time.
type Storage struct {
	// ID is the charm's name for the storage and a number that is never used again: "data/0".
	ID string `json:"-"`
	// Machine is the id of the machine that has the directory.
	Machine string `json:"machine"`
	Pool    string `json:"pool"`
	// Size is the requested size in MiB.
	Size int64 `json:"size,omitempty"`
	// Made reports whether the directory may exist.
	Made bool `json:"made,omitempty"`
	// Bound reports whether the storage was available to a unit at least once since the directory was made.
	Bound bool `json:"bound,omitempty"`
	// Life is Dying if the storage will be removed with its content once no unit has it.
	Life Life `json:"life"`
	// Unit is the unit that has the storage. It is empty if the storage is detached.
	Unit string `json:"unit,omitempty"`
	// State is the progress of that unit in attaching or detaching the storage.
	State StorageState `json:"state,omitempty"`
	// Location is the path where the unit finds the storage. If the charm declares no location, Location is
	// empty until the unit's agent has chosen a path.
	Location string    `json:"location,omitempty"`
	ReadOnly bool      `json:"read-only,omitempty"`
	Since    time.Time `json:"since"` // when State changed
}

// StorageState is the progress of a unit in attaching or detaching a storage.
type StorageState string

// The states, in their order.
const (
	StorageDetached  StorageState = ""
	StoragePending   StorageState = "pending"   // the agent must create it and bind it at its location
	StorageBound     StorageState = "attaching" // it is available; its storage-attached hook must still run
	StorageAttached  StorageState = "attached"
	StorageDetaching StorageState = "detaching" // its storage-detaching hook must still run
	StorageUnbinding StorageState = "releasing" // the agent must unbind it from the unit
)

// Name returns the charm's name for the storage.
func (s Storage) Name() string { return path.Dir(s.ID) }

// IsHeld reports whether the storage's pool limits its content to its size.
func (s Storage) IsHeld() bool { return s.Pool == charm.PoolTmpFS && s.Size > 0 }

// isLeaving reports whether the storage is being removed, or its unit is giving it up.
func (s Storage) isLeaving() bool {
	return s.Life != Alive || s.State == StorageDetaching || s.State == StorageUnbinding
}

// setState changes the state, and the time of its last change.
func (s *Storage) setState(to StorageState) {
	s.State = to
	s.Since = time.Now().UTC().Truncate(time.Second)
}

// Storage reads a storage. It returns ErrNotFound if there is no such storage.
func (v *View) Storage(id string) (Storage, error) {
	s, err := keyspace.LoadExisting[Storage](v.keys, keys.Storage(id), "storage %q not found", id)
	s.ID = id
	return s, err
}

// Storages reads every storage, sorted by name and number.
func (v *View) Storages() (all []Storage, err error) {
	err = ReadBelow(v, keys.Storages, func(key string, s Storage) {
		s.ID = strings.TrimPrefix(key, keys.Storages)
		all = append(all, s)
	})
	slices.SortFunc(all, func(a, b Storage) int { return charm.CompareUnits(a.ID, b.ID) })
	return all, err
}

// UnitStorages reads the storages that units have, sorted by name and number. After PrefetchUnit, it needs no
// round trip for a single unit without storage. Since the units' agents write the lists, it skips entries whose
// storage does not exist or belongs to other units, and lists and records that do not decode.
func (v *View) UnitStorages(units ...string) (all []Storage, err error) {
	return v.unitStorages(v.Skips, units...)
}

// OwnStorages is UnitStorages for callers that act on a unit's storage. A list or record that does not decode is
// an error, since hooks must not run without the unit's storage.
func (v *View) OwnStorages(unit string) (all []Storage, err error) {
	return v.unitStorages(func(error) bool { return false }, unit)
}

// unitStorages reads the storages that units have, sorted by name and number. It leaves out the lists and
// records for whose errors skips returns true, and listed storages that do not exist or belong to other units.
func (v *View) unitStorages(skips func(error) bool, units ...string) (all []Storage, err error) {
	var lists []string
	for _, unit := range units {
		lists = append(lists, keys.UnitStorage(unit))
	}

	// A single list needs at most one round trip anyway, and none after PrefetchUnit.
	if len(units) > 1 {
		if err := v.keys.Prefetch(keyspace.Exactly(lists...)); err != nil {
			return nil, err
		}
	}

	var ids []string
	for _, key := range lists {
		listed, _, err := keyspace.Load[[]string](v.keys, key)
		if skips(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, listed...)
	}
	if len(ids) == 0 {
		return nil, nil
	}

	charm.SortUnits(ids) // an id has the form of a unit's name: NAME/NUMBER
	ids = slices.Compact(ids)
	records := WatchStorages(ids)
	if err := v.keys.Prefetch(records); err != nil {
		return nil, err
	}

	for _, id := range ids {
		s, err := v.Storage(id)
		switch {
		case errors.Is(err, ErrNotFound), skips(err):
			continue
		case err != nil:
			return nil, err
		// A unit's agent writes the list, which can name storage of another unit.
		case slices.Contains(units, s.Unit):
			all = append(all, s)
		}
	}

	return all, nil
}

// The limits on the storages of a unit and on a machine. Package access enforces the same limits for agents.
const (
	MaxUnitStorages    = 64
	MaxMachineStorages = 512
)

// storageBatch is how many storages one transaction of a removal releases or forgets.
const storageBatch = 32

// WatchStorages returns the [Scope] of the records of storages.
func WatchStorages(ids []string) (s Scope) {
	for _, id := range ids {
		s.Keys = append(s.Keys, keys.Storage(id))
	}
	return s
}

// MachineStorage lists the ids of the storages on a machine.
type MachineStorage struct {
	All      []string `json:"all,omitempty"`
	Removing []string `json:"removing,omitempty"` // storages, also in All, whose directories the agent must remove
}

// MachineStorage reads the list of the storages on a machine.
func (v *View) MachineStorage(id string) (MachineStorage, error) {
	return keyspace.LoadOrZero[MachineStorage](v.keys, keys.MachineStorage(id))
}

// changeMachineStorage applies the change to the list of the storages on a machine. It removes a list that
// becomes empty.
func (tx *Tx) changeMachineStorage(machine string, change func(s *MachineStorage)) error {
	s, err := tx.MachineStorage(machine)
	if err != nil {
		return err
	}
	change(&s)
	return tx.keys.PutOrRemove(keys.MachineStorage(machine), s, len(s.All) > 0)
}

// addUnitStorage adds the storage to the unit's list. It returns ErrNoStorage if the list already has
// MaxUnitStorages other storages.
func (tx *Tx) addUnitStorage(unit, id string) error {
	ids, err := tx.otherUnitStorage(unit, id)
	if err != nil {
		return err
	}
	if len(ids) >= MaxUnitStorages {
		return refuse(ErrNoStorage, "unit %q has %d storages, which is the limit", unit, len(ids))
	}

	return tx.keys.Put(keys.UnitStorage(unit), append(ids, id))
}

// removeUnitStorage removes the storage from the unit's list. It does not change a list that does not decode,
// since readers skip such a list.
func (tx *Tx) removeUnitStorage(unit, id string) error {
	ids, err := tx.otherUnitStorage(unit, id)
	if tx.Skips(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return tx.keys.PutOrRemove(keys.UnitStorage(unit), ids, len(ids) > 0)
}

// otherUnitStorage returns the ids in the unit's list, except the given id.
func (tx *Tx) otherUnitStorage(unit, id string) ([]string, error) {
	ids, _, err := keyspace.Load[[]string](tx.keys, keys.UnitStorage(unit))
	return slices.DeleteFunc(ids, func(listed string) bool { return listed == id }), err
}

// putStorage writes the record of a storage.
func (tx *Tx) putStorage(s Storage) error { return tx.keys.Put(keys.Storage(s.ID), s) }

// addServiceStorage gives a new unit the storage that each unit of its service gets. attached has the ids of
// existing storage that the unit gets instead of new storage. The caller must attach that storage itself.
func (tx *Tx) addServiceStorage(s Service, u Unit, attached []string) error {
	for _, name := range slices.Sorted(maps.Keys(s.Storage)) {
		d := s.Storage[name]
		d.Count = max(d.Count, 1)

		// Existing storage takes the place of new storage with the same name.
		for _, id := range attached {
			if path.Dir(id) == name { // an id is NAME/NUMBER
				d.Count--
			}
		}
		if d.Count <= 0 {
			continue
		}

		if _, err := tx.AddStorage(u.Name, name, d); err != nil {
			return err
		}
	}

	return nil
}

// AddStorage gives a unit new storage with the charm's name for it, and returns the ids. It adds one storage,
// unless the directive has a count. It returns ErrNotFound if there is no such unit, and ErrDead if the unit
// is not alive. It returns ErrNoStorage if the charm does not declare the storage or does not allow so many, or if
// the unit or its machine would have too many storages. It returns a different error if the size is too small or
// missing.
func (tx *Tx) AddStorage(unit, name string, d charm.Directive) (ids []string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot add storage %q to unit %q: %w", name, unit, err)
		}
	}()

	u, declared, count, err := tx.wantedStorage(unit, name)
	if err != nil {
		return nil, err
	}

	d, err = completeDirective(name, declared, d)
	if err != nil {
		return nil, err
	}

	// The charm's limit includes the storage that the unit already has.
	d.Count = max(d.Count, 1)
	if err := declared.CheckCount(name, count+d.Count); err != nil {
		return nil, refuse(ErrNoStorage, "%v", err)
	}

	for range d.Count {
		s, err := tx.newStorage(name, u.Machine, d)
		if err != nil {
			return nil, err
		}
		if err := tx.giveStorage(s, unit, declared); err != nil {
			return nil, err
		}
		ids = append(ids, s.ID)
	}

	return ids, nil
}

// newStorage returns storage with a new id, and adds the id to the machine's list. It does not write the
// storage's own record. It returns ErrNoStorage if the machine already has MaxMachineStorages.
func (tx *Tx) newStorage(name, machine string, d charm.Directive) (Storage, error) {
	list, err := tx.MachineStorage(machine)
	if err != nil {
		return Storage{}, err
	}
	if len(list.All) >= MaxMachineStorages {
		return Storage{}, refuse(ErrNoStorage, "machine %s has %d storages, which is the limit; to remove storage that no unit needs: juju remove-storage",
			machine, len(list.All))
	}

	n, err := tx.keys.NextNumber(keys.StorageCounter)
	if err != nil {
		return Storage{}, err
	}

	s := Storage{
		ID:      name + "/" + strconv.Itoa(n),
		Machine: machine,
		Pool:    d.Pool,
		Size:    d.Size,
		Life:    Alive,
	}
	addID := func(m *MachineStorage) { m.All = append(m.All, s.ID) }
	return s, tx.changeMachineStorage(machine, addID)
}

// wantedStorage reads what decides whether a unit can get one more storage called name: the unit, its charm's
// declaration of the storage, and the count of such storages that the unit already has. It returns ErrNotFound if
// there is no such unit, ErrDead if the unit is not alive, and ErrNoStorage if the charm does not declare the
// storage.
func (tx *Tx) wantedStorage(unit, name string) (u Unit, declared charm.Storage, count int, err error) {
	if u, err = tx.Unit(unit); err != nil {
		return u, declared, 0, err
	}
	if u.Life != Alive {
		return u, declared, 0, refuse(ErrDead, "it is %s", u.Life)
	}

	c, err := tx.CharmOf(u.Service, u.Charm)
	if err != nil {
		return u, declared, 0, err
	}

	declared, exists := c.Meta.Storage[name]
	if !exists {
		return u, declared, 0, noStorageError(c.Meta, name)
	}
	all, err := tx.OwnStorages(unit)
	return u, declared, CountStorages(all, name), err
}

// CountStorages returns how many of the storages have that name in the charm.
func CountStorages(all []Storage, name string) (n int) {
	for _, s := range all {
		if s.Name() == name {
			n++
		}
	}
	return n
}

// giveStorage records that the unit gets the storage. The unit's agent then binds the storage at its
// location. If the storage was not bound before, the agent first creates its directory. declared is the
// charm's declaration of the storage.
func (tx *Tx) giveStorage(s Storage, unit string, declared charm.Storage) error {
	s.Unit = unit
	s.Location = declared.LocationOf(s.ID)
	s.ReadOnly = declared.ReadOnly
	s.setState(StoragePending)
	if err := tx.addUnitStorage(unit, s.ID); err != nil {
		return err
	}

	return tx.putStorage(s)
}
