package state

import (
	"cmp"
	"context"
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
	Service  string       `json:"service"` // that it was made for
	Machine  string       `json:"machine"` // where its folder is
	Pool     string       `json:"pool"`
	Size     int64        `json:"size,omitempty"`     // MiB that were asked for
	Made     bool         `json:"made,omitempty"`     // its folder may be there
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

// Name is what the charm calls it.
func (s Storage) Name() string { return path.Dir(s.ID) }

// IsHeld reports whether its pool holds what is in it to its size.
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
	err = readBelow(v, keys.Storages, func(key string, s Storage) {
		s.ID = strings.TrimPrefix(key, keys.Storages)
		all = append(all, s)
	})
	slices.SortFunc(all, func(a, b Storage) int { return charm.CompareUnits(a.ID, b.ID) })
	return all, err
}

// UnitStorages reads the storages that a unit has, by name and number. A unit without any costs
// no round trip after PrefetchUnit.
func (v *View) UnitStorages(unit string) (all []Storage, err error) {
	ids, _, err := keyspace.Load[[]string](v.keys, keys.UnitStorage(unit))
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

// MachineStorage reads what storage there is on a machine.
func (v *View) MachineStorage(id string) (MachineStorage, error) {
	s, _, err := keyspace.Load[MachineStorage](v.keys, keys.MachineStorage(id))
	return s, err
}

func (tx *Tx) changeMachineStorage(machine string, change func(s *MachineStorage)) error {
	s, err := tx.MachineStorage(machine)
	if err != nil {
		return err
	}
	change(&s)
	if len(s.All) == 0 {
		tx.keys.Remove(keys.MachineStorage(machine))
		return nil
	}
	return tx.keys.Put(keys.MachineStorage(machine), s)
}

// changeUnitStorage notes with a unit that it has a storage, or not any more.
func (tx *Tx) changeUnitStorage(unit, id string, in bool) error {
	ids, _, err := keyspace.Load[[]string](tx.keys, keys.UnitStorage(unit))
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(one string) bool { return one == id })
	if in {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		tx.keys.Remove(keys.UnitStorage(unit))
		return nil
	}
	return tx.keys.Put(keys.UnitStorage(unit), ids)
}

func (tx *Tx) putStorage(s Storage) error { return tx.keys.Put(keys.Storage(s.ID), s) }

// chooseStorage returns what storage each unit of a service gets: what its charm needs, as the
// operator's directives say.
func chooseStorage(m charm.Meta, asked map[string]charm.Directive) (map[string]charm.Directive, error) {
	chosen := map[string]charm.Directive{}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if _, there := m.Storage[name]; !there {
			return nil, noStorageError(m, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Storage)) {
		wants := m.Storage[name]
		d, given := asked[name]
		if !given && wants.CheckCount(name, 1) != nil {
			continue // an operator has forced the charm
		}
		d.Count = cmp.Or(d.Count, wants.Minimum)
		if given {
			d.Count = max(d.Count, 1)
		}
		var err error
		if d.Count > 0 {
			chosen[name], err = completeDirective(name, wants, d)
		}
		switch {
		case err != nil:
			return nil, err
		case d.Count < wants.Minimum:
			return nil, fmt.Errorf("each unit needs %d of storage %q at least", wants.Minimum, name)
		}
		if err := wants.CheckCount(name, d.Count); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

func noStorageError(m charm.Meta, name string) error {
	if len(m.Storage) == 0 {
		return fmt.Errorf("the charm has no storage %q: it has none", name)
	}
	return fmt.Errorf("the charm has no storage %q: it has %s", name, strings.Join(slices.Sorted(maps.Keys(m.Storage)), ", "))
}

func completeDirective(name string, wants charm.Storage, d charm.Directive) (charm.Directive, error) {
	d.Pool, d.Size = cmp.Or(d.Pool, charm.PoolRootFS), cmp.Or(d.Size, wants.Size)
	if d.Size < wants.Size {
		return d, fmt.Errorf("storage %q has to have %dM at least", name, wants.Size)
	}
	if d.Pool == charm.PoolTmpFS && d.Size == 0 {
		return d, fmt.Errorf("storage %q needs a size in pool %s: %s=%s,256M", name, d.Pool, name, d.Pool)
	}
	return d, nil
}

// addServiceStorage gives a new unit what each of its service gets.
func (tx *Tx) addServiceStorage(s Service, u Unit) error {
	for _, name := range slices.Sorted(maps.Keys(s.Storage)) {
		if _, err := tx.AddStorage(u.Name, name, s.Storage[name]); err != nil {
			return err
		}
	}
	return nil
}

// AddStorage gives a unit more of a storage of its charm: one, if the directive does not say how
// many. It returns their ids. ErrNotFound, ErrDead.
func (tx *Tx) AddStorage(unit, name string, d charm.Directive) (ids []string, err error) {
	defer wrapError(&err, "cannot add storage %q to unit %q", name, unit)
	u, wants, has, err := tx.wantedStorage(unit, name)
	if err == nil {
		d, err = completeDirective(name, wants, d)
	}
	if err != nil {
		return nil, err
	}
	d.Count = max(d.Count, 1)
	if err := wants.CheckCount(name, has+d.Count); err != nil {
		return nil, err
	}
	for range d.Count {
		n, err := tx.keys.NextNumber(keys.StorageCounter)
		if err != nil {
			return nil, err
		}
		s := Storage{ID: name + "/" + strconv.Itoa(n), Service: u.Service, Machine: u.Machine, Pool: d.Pool, Size: d.Size, Life: Alive}
		ids = append(ids, s.ID)
		err = tx.changeMachineStorage(s.Machine, func(m *MachineStorage) { m.All = append(m.All, s.ID) })
		if err := errors.Join(err, tx.give(s, unit, wants)); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// wantedStorage returns what the charm of an alive unit says of a storage, and how many the unit has.
func (tx *Tx) wantedStorage(unit, name string) (u Unit, wants charm.Storage, has int, err error) {
	if u, err = tx.Unit(unit); err != nil {
		return u, wants, 0, err
	}
	if u.Life != Alive {
		return u, wants, 0, refuse(ErrDead, "it is %s", u.Life)
	}
	s, err := tx.Service(u.Service)
	if err != nil {
		return u, wants, 0, err
	}
	c, err := tx.Charm(cmp.Or(u.Charm, s.Charm))
	if err != nil {
		return u, wants, 0, err
	}
	wants, there := c.Meta.Storage[name]
	if !there {
		return u, wants, 0, noStorageError(c.Meta, name)
	}
	all, err := tx.UnitStorages(unit)
	for _, one := range all {
		if one.Name() == name {
			has++
		}
	}
	return u, wants, has, err
}

func (tx *Tx) give(s Storage, unit string, wants charm.Storage) error {
	s.Unit, s.Location, s.ReadOnly = unit, wants.LocationOf(s.ID), wants.ReadOnly
	s.setState(StoragePending)
	return errors.Join(tx.changeUnitStorage(unit, s.ID, true), tx.putStorage(s))
}

// AttachStorage gives a unit a storage that no unit has, on the same machine. ErrNotFound, ErrInUse, ErrDead.
func (tx *Tx) AttachStorage(unit, id string) (err error) {
	defer wrapError(&err, "cannot attach storage %q to unit %q", id, unit)
	s, err := tx.Storage(id)
	if err != nil {
		return err
	}
	u, wants, has, err := tx.wantedStorage(unit, s.Name())
	switch {
	case err != nil:
		return err
	case s.Unit != "":
		return refuse(ErrInUse, "unit %q has it", s.Unit)
	case s.Life != Alive:
		return refuse(ErrDead, "it is being removed")
	case s.Machine != u.Machine:
		return fmt.Errorf("it is on machine %s, the unit on machine %s", s.Machine, u.Machine)
	}
	return errors.Join(wants.CheckCount(s.Name(), has+1), tx.give(s, unit, wants))
}

// DetachStorage has the agent of the unit that has a storage run its detaching hook and give it
// back. What it holds stays. ErrNotFound.
func (tx *Tx) DetachStorage(id string) error {
	s, err := tx.Storage(id)
	switch {
	case err != nil:
		return err
	case s.Unit == "":
		return fmt.Errorf("cannot detach storage %q: no unit has it", id)
	case s.State == StorageAttached:
		s.setState(StorageDetaching)
	case s.State != StorageDetaching:
		s.setState(StorageUnbinding)
	}
	return tx.putStorage(s)
}

// EndStorageHook records that a hook about a storage has run. One that is gone is no error.
func (tx *Tx) EndStorageHook(id string, attached bool) error {
	s, err := tx.Storage(id)
	switch {
	case err != nil:
		return IgnoreNotFound(err)
	case !attached:
		s.setState(StorageUnbinding)
	case s.State == StorageUnbinding: // meanwhile an operator has detached it
		s.setState(StorageDetaching)
	default:
		s.setState(StorageAttached)
	}
	return tx.putStorage(s)
}

// MarkStorageMade records that a unit's agent is about to make a storage's folder: from now on
// there may be something in it that must not be lost.
func (tx *Tx) MarkStorageMade(id string) error {
	s, err := tx.Storage(id)
	if err != nil || s.Made {
		return err
	}
	s.Made = true
	return tx.putStorage(s)
}

// SetStorageBound records that a unit's agent has bound a storage where the unit finds it.
func (tx *Tx) SetStorageBound(id, location string) error {
	s, err := tx.Storage(id)
	if err != nil || s.State != StoragePending {
		return err
	}
	s.Location = location
	s.setState(StorageBound)
	return tx.putStorage(s)
}

// ReleaseStorage takes a storage from the unit that has it. It stays with what it holds, unless it was to
// go, or nothing was ever made.
func (tx *Tx) ReleaseStorage(id string) error {
	s, err := tx.Storage(id)
	if err != nil {
		return IgnoreNotFound(err)
	}
	if s.Unit != "" {
		err = tx.changeUnitStorage(s.Unit, id, false)
	}
	s.Unit, s.Location = "", ""
	s.setState(StorageDetached)
	if s.Life != Alive || !s.Made {
		return errors.Join(err, tx.queueRemoval(s))
	}
	return errors.Join(err, tx.putStorage(s))
}

func (tx *Tx) queueRemoval(s Storage) error {
	if !s.Made {
		return tx.EndStorage(s.ID)
	}
	s.Life = Dying
	return errors.Join(tx.putStorage(s), tx.changeMachineStorage(s.Machine, func(m *MachineStorage) {
		if !slices.Contains(m.Removing, s.ID) {
			m.Removing = append(m.Removing, s.ID)
		}
	}))
}

// RemoveStorage has the machine's agent remove a storage with all that it holds. One that a unit
// has is refused with ErrInUse; with detach, the unit gives it back first. ErrNotFound.
func (tx *Tx) RemoveStorage(id string, detach bool) error {
	s, err := tx.Storage(id)
	switch {
	case err != nil:
		return err
	case s.Unit == "":
		return tx.queueRemoval(s)
	case !detach:
		return refuse(ErrInUse, "cannot remove storage %q: unit %q has it; detach it first, or use --force", id, s.Unit)
	}
	s.Life = Dying
	return errors.Join(tx.putStorage(s), tx.DetachStorage(id))
}

// RemoveUnitStorage has the storage that a unit has removed once it has given it back, as it does
// when it leaves.
func (tx *Tx) RemoveUnitStorage(unit string) error {
	all, err := tx.UnitStorages(unit)
	for _, s := range all {
		s.Life = Dying
		err = errors.Join(err, tx.putStorage(s))
	}
	return err
}

// RemoveServiceStorage is RemoveUnitStorage for all units of a service. It works in batches.
func (s *State) RemoveServiceStorage(ctx context.Context, service string) error {
	units, err := Read(ctx, s, func(v *View) ([]Unit, error) { return v.Units(service) })
	if err != nil {
		return err
	}
	return inBatches(ctx, s.Update, units, func(tx *Tx, u Unit) error { return tx.RemoveUnitStorage(u.Name) })
}

// EndStorage forgets a storage: there is nothing of it any more.
func (tx *Tx) EndStorage(id string) error {
	s, err := tx.Storage(id)
	if err != nil {
		return IgnoreNotFound(err)
	}
	tx.keys.Remove(keys.Storage(id))
	is := func(one string) bool { return one == id }
	return tx.changeMachineStorage(s.Machine, func(m *MachineStorage) {
		m.All, m.Removing = slices.DeleteFunc(m.All, is), slices.DeleteFunc(m.Removing, is)
	})
}

// releaseUnitStorage is for a unit that goes.
func (tx *Tx) releaseUnitStorage(unit string) error {
	all, err := tx.UnitStorages(unit)
	for _, s := range all {
		err = errors.Join(err, tx.ReleaseStorage(s.ID))
	}
	return err
}

// forgetMachineStorage is for a machine that is gone, with all that was on it.
func (tx *Tx) forgetMachineStorage(machine string) error {
	m, err := tx.MachineStorage(machine)
	for _, id := range m.All {
		err = errors.Join(err, tx.EndStorage(id))
	}
	return err
}
