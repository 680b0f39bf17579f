package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/state/charm"
	"bijou/state/keys"
)

// AttachStorage gives a unit a storage that no unit has, on the same machine. ErrNotFound, ErrInUse, ErrDead.
func (tx *Tx) AttachStorage(unit, id string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot attach storage %q to unit %q: %w", id, unit, err)
		}
	}()

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

	if err := wants.CheckCount(s.Name(), has+1); err != nil {
		return err
	}

	return tx.give(s, unit, wants)
}

// DetachStorage makes the agent of the storage's unit run the detaching hook and give the storage back. The
// storage keeps its content. It returns ErrNotFound if there is no such storage.
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

// MarkStorageMade records that a unit's agent is about to make a storage's directory. From then on the
// directory may hold data that must not be lost.
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

	s.Location, s.Bound = location, true
	s.setState(StorageBound)
	return tx.putStorage(s)
}

// RenewStorage replaces a storage whose content is lost by an empty one. Its unit gets it like a new one,
// with a storage-attached hook. A storage without a unit, and one that is being detached or removed, is
// removed.
func (tx *Tx) RenewStorage(id string) error {
	s, err := tx.Storage(id)
	if err != nil {
		return err
	}

	s.Made = false
	if s.Unit == "" || s.Life != Alive || s.State == StorageDetaching || s.State == StorageUnbinding {
		if err := tx.putStorage(s); err != nil {
			return err
		}
		return tx.ReleaseStorage(id)
	}

	return tx.attachAgain(s)
}

// KeepStorage keeps a storage whose directory was put back from the backup of a different environment. Its
// unit gets it with a storage-attached hook.
func (tx *Tx) KeepStorage(id string) error {
	s, err := tx.Storage(id)
	if err != nil || s.Unit == "" {
		return err
	}
	if s.Life != Alive || s.State == StorageDetaching || s.State == StorageUnbinding {
		return tx.ReleaseStorage(id)
	}

	s.Made = true
	return tx.attachAgain(s)
}

// ReattachStorage gives a storage to its unit again, unchanged, with a storage-attached hook. The agent
// makes the storage's directory if it is missing. It does nothing for a storage without a unit.
func (tx *Tx) ReattachStorage(id string) error {
	s, err := tx.Storage(id)
	if err != nil || s.Unit == "" {
		return err
	}
	return tx.attachAgain(s)
}

func (tx *Tx) attachAgain(s Storage) error {
	location, err := tx.storageLocation(s)
	if err != nil {
		return err
	}

	s.Bound, s.Location = false, location
	s.setState(StoragePending)
	return tx.putStorage(s)
}

// storageLocation returns the location that the charm of the storage's unit wants; empty: any.
func (tx *Tx) storageLocation(s Storage) (string, error) {
	u, err := tx.Unit(s.Unit)
	if err != nil {
		return "", IgnoreNotFound(err)
	}
	c, err := tx.CharmOf(u.Service, u.Charm)
	if err != nil {
		return "", IgnoreNotFound(err)
	}

	return c.Meta.Storage[s.Name()].LocationOf(s.ID), nil
}

// ReleaseStorage takes a storage from its unit. The storage stays with its content, unless it is being
// removed, or was never made.
func (tx *Tx) ReleaseStorage(id string) error {
	s, err := tx.Storage(id)
	if err != nil {
		return IgnoreNotFound(err)
	}

	if s.Unit != "" {
		if err := tx.changeUnitStorage(s.Unit, id, false); err != nil {
			return err
		}
	}

	s.Unit, s.Location = "", ""
	s.setState(StorageDetached)
	if s.Life != Alive || !s.Made {
		return tx.queueRemoval(s)
	}
	return tx.putStorage(s)
}

func (tx *Tx) queueRemoval(s Storage) error {
	if !s.Made {
		return tx.EndStorage(s.ID)
	}

	s.Life = Dying
	if err := tx.putStorage(s); err != nil {
		return err
	}

	return tx.changeMachineStorage(s.Machine, func(m *MachineStorage) {
		if !slices.Contains(m.Removing, s.ID) {
			m.Removing = append(m.Removing, s.ID)
		}
	})
}

// RemoveStorage makes the machine's agent remove a storage with its content. It returns ErrInUse if a unit
// has the storage, unless detach is set: then the unit gives it back first. It returns ErrNotFound if there
// is no such storage.
func (tx *Tx) RemoveStorage(id string, detach bool) error {
	s, err := tx.Storage(id)
	switch {
	case err != nil:
		return err
	case s.Unit == "":
		return tx.queueRemoval(s)
	case !detach:
		return refuse(ErrInUse, "cannot remove storage %q: unit %q has it; detach it first, or use --force",
			id, s.Unit)
	}

	s.Life = Dying
	if err := tx.putStorage(s); err != nil {
		return err
	}

	return tx.DetachStorage(id)
}

// ForgetStorage removes the record of a storage, and leaves its directory untouched. It returns ErrNotFound
// if there is no such storage, and ErrInUse if a unit has it or if it is memory, which would stay occupied.
func (tx *Tx) ForgetStorage(id string) error {
	s, err := tx.Storage(id)
	switch {
	case err != nil:
		return err
	case s.Unit != "":
		return refuse(ErrInUse, "cannot forget storage %q: unit %q has it; detach it first", id, s.Unit)
	case s.Pool == charm.PoolTmpFS:
		return refuse(ErrInUse, "cannot forget storage %q: it is memory, which would stay in use", id)
	}

	return tx.EndStorage(id)
}

// RemoveUnitStorage removes a unit's storage as soon as the unit has given it back, as it does when it
// leaves.
func (tx *Tx) RemoveUnitStorage(unit string) error {
	all, err := tx.UnitStorages(unit)
	if err != nil {
		return err
	}

	for _, s := range all {
		s.Life = Dying
		if err := tx.putStorage(s); err != nil {
			return err
		}
	}

	return nil
}

// RemoveServiceStorage is RemoveUnitStorage for all units of a service. It works in batches.
func (s *State) RemoveServiceStorage(ctx context.Context, service string) error {
	units, err := Read(ctx, s, func(v *View) ([]Unit, error) { return v.Units(service) })
	if err != nil {
		return err
	}
	return inBatches(ctx, s.Update, units, func(tx *Tx, u Unit) error { return tx.RemoveUnitStorage(u.Name) })
}

// EndStorage removes the record of a storage of which nothing is left.
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

// releaseUnitStorage releases the storage of a unit that is removed.
func (tx *Tx) releaseUnitStorage(unit string) error {
	all, err := tx.UnitStorages(unit)
	if err != nil {
		return err
	}

	for _, s := range all {
		if err := tx.ReleaseStorage(s.ID); err != nil {
			return err
		}
	}

	return nil
}

// forgetMachineStorage removes the records of the storage on a machine that is gone.
func (tx *Tx) forgetMachineStorage(machine string) error {
	m, err := tx.MachineStorage(machine)
	if err != nil {
		return err
	}

	for _, id := range m.All {
		s, err := tx.Storage(id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if s.Machine != machine {
			continue // the list is the machine's own word, and what it names may be another's
		}
		if err := tx.EndStorage(id); err != nil {
			return err
		}
	}

	tx.keys.Remove(keys.MachineStorage(machine))
	return nil
}

// ChooseStorage returns the storage that each unit of a service gets: the charm's storage, completed by the
// operator's directives. It returns an error if the charm has no storage of a name, or does not allow the
// count.
func ChooseStorage(m charm.Meta, asked map[string]charm.Directive) (map[string]charm.Directive, error) {
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
			return nil, fmt.Errorf("each unit needs at least %d of storage %q", wants.Minimum, name)
		}

		if err := wants.CheckCount(name, d.Count); err != nil {
			return nil, err
		}
	}

	return chosen, nil
}

// SetServiceStorage replaces the storage that future units of a service get. It returns ErrNotFound or
// ErrDead for such a service.
func (tx *Tx) SetServiceStorage(service string, asked map[string]charm.Directive) error {
	s, err := tx.AliveService(service)
	if err != nil {
		return err
	}

	c, err := tx.Charm(s.Charm)
	if err != nil {
		return fmt.Errorf("cannot set storage of application %q: %w", service, err)
	}

	s.Storage, err = ChooseStorage(c.Meta, asked)
	if err != nil {
		return fmt.Errorf("cannot set storage of application %q: %w", service, err)
	}

	return tx.keys.Put(keys.Service(service), s)
}

func noStorageError(m charm.Meta, name string) error {
	if len(m.Storage) == 0 {
		return refuse(ErrNoStorage, "the charm has no storage %q: it has none", name)
	}
	return refuse(ErrNoStorage, "the charm has no storage %q: it has %s", name,
		strings.Join(slices.Sorted(maps.Keys(m.Storage)), ", "))
}

func completeDirective(name string, wants charm.Storage, d charm.Directive) (charm.Directive, error) {
	d.Pool, d.Size = cmp.Or(d.Pool, charm.PoolRootFS), cmp.Or(d.Size, wants.Size)
	if d.Size < wants.Size {
		return d, fmt.Errorf("storage %q must have at least %dM", name, wants.Size)
	}
	if d.Pool == charm.PoolTmpFS && d.Size == 0 {
		return d, fmt.Errorf("storage %q needs a size in pool %s: %s=%s,256M", name, d.Pool, name, d.Pool)
	}

	return d, nil
}
