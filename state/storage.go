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

// Storage is an instance of a storage: a folder of one machine, which one unit has at a time, or
// none.
type Storage struct {
	ID       string       `json:"-"`       // "data/0": what the charm calls it, and a number that is never given again
	Machine  string       `json:"machine"` // where its folder is
	Pool     string       `json:"pool"`
	Size     int64        `json:"size,omitempty"`     // MiB that were asked for
	Made     bool         `json:"made,omitempty"`     // its folder may be there
	Bound    bool         `json:"bound,omitempty"`    // it is, or was: a unit has found it
	Life     Life         `json:"life"`               // Dying: it goes with all that it holds, once no unit has it
	Unit     string       `json:"unit,omitempty"`     // that has it; empty: it is detached
	State    StorageState `json:"state,omitempty"`    // how far that unit is with it
	Location string       `json:"location,omitempty"` // where that unit finds it; empty: nowhere yet, if the charm does not say where
	ReadOnly bool         `json:"read-only,omitempty"`
	Since    time.Time    `json:"since"` // when State changed
}

// StorageState is how far a unit is with a storage.
type StorageState string

// The states, in their order.
const (
	StorageDetached  StorageState = ""
	StoragePending   StorageState = "pending"   // its agent is to make it, and bind it where the charm wants it
	StorageBound     StorageState = "attaching" // it is there, its attached hook is owed
	StorageAttached  StorageState = "attached"
	StorageDetaching StorageState = "detaching" // its detaching hook is owed
	StorageUnbinding StorageState = "releasing" // the agent is to take it away from the unit
)

// Name returns the charm's name for the storage.
func (s Storage) Name() string { return path.Dir(s.ID) }

// IsHeld reports whether the storage's pool limits its content to its size.
func (s Storage) IsHeld() bool { return s.Pool == charm.PoolTmpFS && s.Size > 0 }

func (s *Storage) setState(to StorageState) {
	s.State, s.Since = to, time.Now().UTC().Truncate(time.Second)
}

// Storage reads a storage. ErrNotFound.
func (v *View) Storage(id string) (Storage, error) {
	s, err := keyspace.LoadExisting[Storage](v.keys, keys.Storage(id), "storage %q not found", id)
	s.ID = id
	return s, err
}

// Storages reads every storage, by name and number.
func (v *View) Storages() (all []Storage, err error) {
	err = ReadBelow(v, keys.Storages, func(key string, s Storage) {
		s.ID = strings.TrimPrefix(key, keys.Storages)
		all = append(all, s)
	})
	slices.SortFunc(all, func(a, b Storage) int { return charm.CompareUnits(a.ID, b.ID) })
	return all, err
}

// UnitStorages reads the storages that units have, by name and number. A unit without any costs
// no round trip after PrefetchUnit.
func (v *View) UnitStorages(units ...string) (all []Storage, err error) {
	var lists, ids []string
	for _, unit := range units {
		lists = append(lists, keys.UnitStorage(unit))
	}
	if len(units) > 1 { // that of one was prefetched with it
		err = v.keys.Prefetch(lists...)
	}

	for _, key := range lists {
		of, _, lerr := keyspace.Load[[]string](v.keys, key)
		ids, err = append(ids, of...), errors.Join(err, lerr)
	}

	if err != nil || len(ids) == 0 {
		return nil, err
	}

	charm.SortUnits(ids)
	err = v.keys.Prefetch(WatchStorages(ids).Keys...)
	for _, id := range ids {
		s, serr := v.Storage(id)
		all, err = append(all, s), errors.Join(err, serr)
	}

	return all, err
}

// WatchStorages covers the records of storages.
func WatchStorages(ids []string) (s Scope) {
	for _, id := range ids {
		s.Keys = append(s.Keys, keys.Storage(id))
	}
	return s
}

// MachineStorage lists what is on a machine, by the storages' ids.
type MachineStorage struct {
	All      []string `json:"all,omitempty"`
	Removing []string `json:"removing,omitempty"` // of them those whose folders are to be removed
}

// MachineStorage reads the list of the storages on a machine.
func (v *View) MachineStorage(id string) (MachineStorage, error) {
	return keyspace.LoadOrZero[MachineStorage](v.keys, keys.MachineStorage(id))
}

func (tx *Tx) changeMachineStorage(machine string, change func(s *MachineStorage)) error {
	s, err := tx.MachineStorage(machine)
	if err != nil {
		return err
	}
	change(&s)
	return tx.keys.PutOrRemove(keys.MachineStorage(machine), s, len(s.All) > 0)
}

// changeUnitStorage adds the storage to the unit's list, or removes it.
func (tx *Tx) changeUnitStorage(unit, id string, in bool) error {
	ids, _, err := keyspace.Load[[]string](tx.keys, keys.UnitStorage(unit))
	if err != nil {
		return err
	}

	ids = slices.DeleteFunc(ids, func(one string) bool { return one == id })
	if in {
		ids = append(ids, id)
	}
	return tx.keys.PutOrRemove(keys.UnitStorage(unit), ids, len(ids) > 0)
}

func (tx *Tx) putStorage(s Storage) error { return tx.keys.Put(keys.Storage(s.ID), s) }

// addServiceStorage gives a new unit the storage that each unit of its service gets. Storage that is
// attached to it instead counts towards that.
func (tx *Tx) addServiceStorage(s Service, u Unit, attached []string) error {
	for _, name := range slices.Sorted(maps.Keys(s.Storage)) {
		d := s.Storage[name]
		d.Count = max(d.Count, 1)
		for _, id := range attached {
			if path.Dir(id) == name {
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

// AddStorage gives a unit new storage by a name of its charm; one, unless the directive has a count. It
// returns the ids. It returns ErrNotFound if there is no such unit, ErrDead if the unit is dying, and
// ErrNoStorage if the charm does not allow it.
func (tx *Tx) AddStorage(unit, name string, d charm.Directive) (ids []string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot add storage %q to unit %q: %w", name, unit, err)
		}
	}()

	u, wants, has, err := tx.wantedStorage(unit, name)
	if err != nil {
		return nil, err
	}

	d, err = completeDirective(name, wants, d)
	if err != nil {
		return nil, err
	}

	d.Count = max(d.Count, 1)
	if err := wants.CheckCount(name, has+d.Count); err != nil {
		return nil, refuse(ErrNoStorage, "%v", err)
	}

	for range d.Count {
		s, err := tx.newStorage(name, u.Machine, d)
		if err != nil {
			return nil, err
		}
		if err := tx.give(s, unit, wants); err != nil {
			return nil, err
		}
		ids = append(ids, s.ID)
	}

	return ids, nil
}

// newStorage returns storage with a new id, which it adds to the machine's list. It does not write the
// storage's own record.
func (tx *Tx) newStorage(name, machine string, d charm.Directive) (Storage, error) {
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

// wantedStorage returns how the charm of an alive unit declares a storage, and how many of it the unit has.
func (tx *Tx) wantedStorage(unit, name string) (u Unit, wants charm.Storage, has int, err error) {
	if u, err = tx.Unit(unit); err != nil {
		return u, wants, 0, err
	}
	if u.Life != Alive {
		return u, wants, 0, refuse(ErrDead, "it is %s", u.Life)
	}

	c, err := tx.CharmOf(u.Service, u.Charm)
	if err != nil {
		return u, wants, 0, err
	}

	wants, there := c.Meta.Storage[name]
	if !there {
		return u, wants, 0, noStorageError(c.Meta, name)
	}
	all, err := tx.UnitStorages(unit)
	return u, wants, CountStorages(all, name), err
}

// CountStorages returns how many of them the charm calls by that name.
func CountStorages(all []Storage, name string) (n int) {
	for _, s := range all {
		if s.Name() == name {
			n++
		}
	}
	return n
}

func (tx *Tx) give(s Storage, unit string, wants charm.Storage) error {
	s.Unit = unit
	s.Location = wants.LocationOf(s.ID)
	s.ReadOnly = wants.ReadOnly
	s.setState(StoragePending)
	if err := tx.changeUnitStorage(unit, s.ID, true); err != nil {
		return err
	}

	return tx.putStorage(s)
}
