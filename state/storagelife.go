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
	"bijou/state/keyspace"
)

// AttachStorage gives a detached storage to a unit on the same machine. It returns ErrNotFound if the storage
// or the unit does not exist, ErrInUse if a unit already has the storage, and ErrDead if the storage is being
// removed or the unit is not alive. It returns ErrNoStorage if the unit's charm does not declare the storage, or if
// the unit has MaxUnitStorages. It returns a different error if the storage is on another machine, or if the charm
// does not allow one more.
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

	u, declared, count, err := tx.wantedStorage(unit, s.Name())
	switch {
	case err != nil:
		return err
	case s.Unit != "":
		return refuse(ErrInUse, "unit %q has it", s.Unit)
	case s.Life != Alive:
		return refuse(ErrDead, "it is being removed")
	case s.Machine != u.Machine:
		return fmt.Errorf("it is on machine %s, but the unit is on machine %s", s.Machine, u.Machine)
	}

	if err := declared.CheckCount(s.Name(), count+1); err != nil {
		return err
	}

	return tx.giveStorage(s, unit, declared)
}

// DetachStorage makes the agent of the storage's unit release the storage. If the unit's storage-attached hook
// has run, the agent runs the storage-detaching hook first. The storage keeps its content. DetachStorage
// returns ErrNotFound if there is no such storage, and a different error if no unit has the storage.
func (tx *Tx) DetachStorage(id string) error {
	s, err := tx.Storage(id)
	if err != nil {
		return err
	}
	if s.Unit == "" {
		return fmt.Errorf("cannot detach storage %q: no unit has it", id)
	}

	switch s.State {
	case StorageAttached:
		s.setState(StorageDetaching)
	case StorageDetaching:
		// The storage-detaching hook must still run.
	default:
		// No storage-detaching hook is due: the storage-attached hook has not ended, or the unit is already
		// releasing the storage.
		s.setState(StorageUnbinding)
	}

	return tx.putStorage(s)
}

// EndStorageHook records that a hook of a storage has run: storage-attached if attached is true, and
// storage-detaching otherwise. It does nothing if the storage no longer exists.
func (tx *Tx) EndStorageHook(id string, attached bool) error {
	s, err := tx.Storage(id)
	switch {
	case err != nil:
		return IgnoreNotFound(err)
	case !attached:
		s.setState(StorageUnbinding)
	case s.State == StorageUnbinding:
		// An operator has detached the storage while its storage-attached hook ran. So the storage-detaching
		// hook must still run.
		s.setState(StorageDetaching)
	default:
		s.setState(StorageAttached)
	}

	return tx.putStorage(s)
}

// MarkStorageMade records that a unit's agent is about to create a storage's directory. From then on, the
// directory can hold data that must not be lost.
func (tx *Tx) MarkStorageMade(id string) error {
	s, err := tx.Storage(id)
	if err != nil {
		return err
	}
	if s.Made {
		return nil
	}
	s.Made = true
	return tx.putStorage(s)
}

// SetStorageBound records that a unit's agent has bound a storage at the location. It does nothing if the
// storage is not pending.
func (tx *Tx) SetStorageBound(id, location string) error {
	s, err := tx.Storage(id)
	if err != nil {
		return err
	}
	// An operator may have detached the storage in the meantime.
	if s.State != StoragePending {
		return nil
	}

	s.Location = location
	s.Bound = true
	s.setState(StorageBound)
	return tx.putStorage(s)
}

// RenewStorage makes the unit's agent create an empty directory in place of a storage's lost content. The unit
// gets the storage again, with a storage-attached hook. If the storage has no unit, or is being detached or
// removed, RenewStorage removes its record instead.
func (tx *Tx) RenewStorage(id string) error {
	s, err := tx.Storage(id)
	if err != nil {
		return err
	}

	// Without a directory, ReleaseStorage removes the record instead of keeping the storage.
	s.Made = false
	if s.Unit == "" || s.isLeaving() {
		if err := tx.putStorage(s); err != nil {
			return err
		}
		return tx.ReleaseStorage(id)
	}

	return tx.attachAgain(s)
}

// KeepStorage keeps a storage whose directory was restored from the backup of a different environment. The
// unit gets the storage again, with a storage-attached hook. If the storage is being detached or removed,
// KeepStorage calls ReleaseStorage instead. It does nothing for a storage without a unit.
func (tx *Tx) KeepStorage(id string) error {
	s, err := tx.Storage(id)
	if err != nil {
		return err
	}
	if s.Unit == "" {
		return nil
	}
	if s.isLeaving() {
		return tx.ReleaseStorage(id)
	}

	s.Made = true // the restored directory
	return tx.attachAgain(s)
}

// ReattachStorage gives a storage to its unit again, with a storage-attached hook. The agent creates the
// storage's directory if it is missing. ReattachStorage does nothing for a storage without a unit, and releases a
// storage that is leaving its unit.
func (tx *Tx) ReattachStorage(id string) error {
	s, err := tx.Storage(id)
	if err != nil {
		return err
	}
	if s.Unit == "" {
		return nil
	}
	// An operator has detached or removed the storage. Its directory is missing, so no storage-detaching hook can run.
	if s.isLeaving() {
		return tx.ReleaseStorage(id)
	}
	return tx.attachAgain(s)
}

// attachAgain makes the agent of the storage's unit bind the storage again, at the location that the charm
// declares, and run the storage-attached hook.
func (tx *Tx) attachAgain(s Storage) error {
	location, err := tx.storageLocation(s)
	if err != nil {
		return err
	}

	// Otherwise the agent would create a missing directory only for storage in memory.
	s.Bound = false
	s.Location = location
	s.setState(StoragePending)
	return tx.putStorage(s)
}

// storageLocation returns the location that the charm of the storage's unit declares. It returns "" if the
// charm accepts any location or does not declare the storage, or if the unit or charm no longer exists.
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

// ReleaseStorage takes a storage from its unit. If the storage's directory was never created, ReleaseStorage removes
// the record. Otherwise, if the storage is being removed, it makes the machine's agent remove the storage. Any
// other storage stays with its content. ReleaseStorage does nothing if the storage has no record.
func (tx *Tx) ReleaseStorage(id string) error {
	s, err := tx.Storage(id)
	if err != nil {
		return IgnoreNotFound(err)
	}

	if s.Unit != "" {
		if err := tx.removeUnitStorage(s.Unit, id); err != nil {
			return err
		}
	}

	s.Unit = ""
	s.Location = ""
	s.setState(StorageDetached)
	if s.Life == Alive && s.Made {
		return tx.putStorage(s)
	}

	err = tx.queueRemoval(s)
	if tx.Skips(err) {
		// The list of the machine's storage does not decode. The storage then ends with its machine.
		return nil
	}
	return err
}

// queueRemoval makes the machine's agent remove a storage. If the storage's directory was never created,
// queueRemoval removes the record at once.
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

// RemoveStorage makes the machine's agent remove a storage with its content. If the storage has no unit, and
// its directory was never created, RemoveStorage removes only the record. If a unit has the storage, detach makes
// the unit release it first; without detach, RemoveStorage returns ErrInUse. It returns ErrNotFound if there is no
// such storage.
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

	// Once the unit releases the storage, ReleaseStorage removes it, since it is dying.
	s.Life = Dying
	if err := tx.putStorage(s); err != nil {
		return err
	}

	return tx.DetachStorage(id)
}

// ForgetStorage removes the record of a storage, and leaves its directory untouched. It returns ErrNotFound
// if there is no such storage, and ErrInUse if a unit has it. It also returns ErrInUse for storage in memory,
// since its memory would stay in use. A record that does not decode is removed without these checks, since its
// unit and pool are unknown.
func (tx *Tx) ForgetStorage(id string) error {
	s, err := tx.Storage(id)
	switch {
	case errors.Is(err, keyspace.ErrDamaged):
		return tx.forgetDamagedStorage(id)
	case err != nil:
		return err
	case s.Unit != "":
		return refuse(ErrInUse, "cannot remove the record of storage %q: unit %q has it; detach it first", id, s.Unit)
	case s.Pool == charm.PoolTmpFS:
		return refuse(ErrInUse, "cannot remove the record of storage %q: its content is in memory, and the memory would stay in use", id)
	}

	return tx.EndStorage(id)
}

// forgetDamagedStorage removes the damaged record of a storage, and the entry in a machine's list. Since the record
// cannot name the machine, forgetDamagedStorage searches the lists of all machines. The entry in a unit's list can
// stay, since readers skip entries without a record.
func (tx *Tx) forgetDamagedStorage(id string) error {
	tx.keys.Remove(keys.Storage(id))
	kvs, err := tx.keys.ListUnguarded(keys.Machines)
	if err != nil {
		return err
	}

	for _, kv := range kvs {
		machine, isList := strings.CutSuffix(strings.TrimPrefix(kv.Key, keys.Machines), "/storage")
		if !isList {
			continue
		}
		// A list that does not decode cannot name the storage.
		list, err := keyspace.Decode[MachineStorage](kv)
		if err == nil && slices.Contains(list.All, id) {
			return tx.removeMachineStorage(machine, id)
		}
	}

	return nil
}

// RemoveUnitStorage marks a unit's storage as dying, so that it is removed when the unit releases it. A unit
// releases all of its storage before the unit is removed.
func (tx *Tx) RemoveUnitStorage(unit string) error {
	all, err := tx.OwnStorages(unit)
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

// EndStorage removes the record of a storage whose directory no longer exists, and takes the storage out of its
// machine's list. It does nothing if the storage has no record.
func (tx *Tx) EndStorage(id string) error {
	s, err := tx.Storage(id)
	if err != nil {
		return IgnoreNotFound(err)
	}

	tx.keys.Remove(keys.Storage(id))
	return tx.removeMachineStorage(s.Machine, id)
}

// removeMachineStorage removes the storage from the machine's list. It does not change a list that does not
// decode, which is removed together with the machine.
func (tx *Tx) removeMachineStorage(machine, id string) error {
	isStorage := func(listed string) bool { return listed == id }
	err := tx.changeMachineStorage(machine, func(m *MachineStorage) {
		m.All = slices.DeleteFunc(m.All, isStorage)
		m.Removing = slices.DeleteFunc(m.Removing, isStorage)
	})
	if tx.Skips(err) {
		return nil
	}
	return err
}

// releaseUnitStorage releases at most limit storages of a unit that is being removed, and returns how many
// entries are left in the unit's list. The unit's agent writes that list. So it can name storage that belongs to a
// different unit, or whose record is missing or does not decode. Such entries are dropped from the list.
func (tx *Tx) releaseUnitStorage(unit string, limit int) (left int, err error) {
	ids, err := tx.listUnitStorage(unit)
	if err != nil {
		return 0, err
	}

	limit = min(limit, len(ids))
	for _, id := range ids[:limit] {
		s, err := tx.Storage(id)
		if errors.Is(err, ErrNotFound) || tx.Skips(err) {
			continue
		}
		if err != nil {
			return 0, err
		}

		if s.Unit != unit {
			continue
		}
		if err := IgnoreNotFound(tx.ReleaseStorage(id)); err != nil {
			return 0, err
		}
	}

	remaining := ids[limit:]
	return len(remaining), tx.keys.PutOrRemove(keys.UnitStorage(unit), remaining, len(remaining) > 0)
}

// listUnitStorage returns the ids in a unit's list of storage. If the list does not decode, it returns the ids
// of the storages that name the unit.
func (tx *Tx) listUnitStorage(unit string) (ids []string, err error) {
	// Skips is true only if the list does not decode.
	ids, _, err = keyspace.Load[[]string](tx.keys, keys.UnitStorage(unit))
	if !tx.Skips(err) {
		return ids, err
	}

	all, err := tx.Storages()
	if err != nil {
		return nil, err
	}
	ids = nil
	for _, s := range all {
		if s.Unit == unit {
			ids = append(ids, s.ID)
		}
	}

	return ids, nil
}

// forgetMachineStorage removes the records of at most limit storages on a machine that is being removed, and
// returns how many entries are left in the machine's list. The machine's agent writes that list, which can name
// storage on a different machine. Such entries are dropped from the list. Listed records that do not decode are
// removed, since nothing would remove them later. If the list itself does not decode, it is removed.
func (tx *Tx) forgetMachineStorage(machine string, limit int) (left int, err error) {
	m, err := tx.MachineStorage(machine)
	if tx.Skips(err) {
		// A sweep removes the records of the machine's storage once the machine is gone.
		tx.keys.Remove(keys.MachineStorage(machine))
		return 0, nil
	}
	if err != nil {
		return 0, err
	}

	limit = min(limit, len(m.All))
	for _, id := range m.All[:limit] {
		s, err := tx.Storage(id)
		if tx.Skips(err) {
			tx.keys.Remove(keys.Storage(id))
			continue
		}
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, err
		}

		if s.Machine != machine {
			continue
		}
		if err := IgnoreNotFound(tx.EndStorage(id)); err != nil {
			return 0, err
		}
	}

	remaining := MachineStorage{All: m.All[limit:], Removing: m.Removing}
	return len(remaining.All), tx.keys.PutOrRemove(keys.MachineStorage(machine), remaining, len(remaining.All) > 0)
}

// ChooseStorage returns the storage that each unit of a service gets: the charm's storage, with the
// operator's directives applied. It leaves out storage of which a unit gets none. It returns ErrNoStorage if a
// directive names storage that the charm does not have. It returns a different error if the charm does not allow
// the requested count or size, if a pool needs a size and there is none, or if bijou does not support the requested
// storage.
func ChooseStorage(m charm.Meta, asked map[string]charm.Directive) (map[string]charm.Directive, error) {
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if _, isDeclared := m.Storage[name]; !isDeclared {
			return nil, noStorageError(m, name)
		}
	}

	chosen := map[string]charm.Directive{}
	for _, name := range slices.Sorted(maps.Keys(m.Storage)) {
		declared := m.Storage[name]
		d, given := asked[name]
		if !given && declared.CheckCount(name, 1) != nil {
			// bijou does not support this kind of storage. The charm can do without it, or an operator has forced
			// the charm.
			continue
		}

		// Without a count, a unit gets the charm's minimum, but at least one storage that the operator asks for.
		d.Count = cmp.Or(d.Count, declared.Minimum)
		if given {
			d.Count = max(d.Count, 1)
		}
		if d.Count > 0 {
			complete, err := completeDirective(name, declared, d)
			if err != nil {
				return nil, err
			}
			chosen[name] = complete
		}

		if d.Count < declared.Minimum {
			return nil, fmt.Errorf("each unit needs at least %d of storage %q", declared.Minimum, name)
		}
		if err := declared.CheckCount(name, d.Count); err != nil {
			return nil, err
		}
	}

	return chosen, nil
}

// SetServiceStorage replaces the storage that future units of a service get. It returns ErrNotFound if the
// service does not exist, and ErrDead if it is not alive. It also returns the errors of ChooseStorage.
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

// noStorageError returns an ErrNoStorage that lists the storage that the charm declares.
func noStorageError(m charm.Meta, name string) error {
	if len(m.Storage) == 0 {
		return refuse(ErrNoStorage, "the charm has no storage %q: it has no storage", name)
	}
	return refuse(ErrNoStorage, "the charm has no storage %q: it has %s", name,
		strings.Join(slices.Sorted(maps.Keys(m.Storage)), ", "))
}

// completeDirective fills in the default pool and the charm's size. It returns an error if the size is too
// small for the charm, or missing in a pool that needs one.
func completeDirective(name string, declared charm.Storage, d charm.Directive) (charm.Directive, error) {
	d.Pool = cmp.Or(d.Pool, charm.PoolRootFS)
	d.Size = cmp.Or(d.Size, declared.Size)
	if d.Size < declared.Size {
		return d, fmt.Errorf("storage %q must have at least %dM", name, declared.Size)
	}
	if d.Pool == charm.PoolTmpFS && d.Size == 0 {
		return d, fmt.Errorf("storage %q needs a size in pool %s: %s=%s,256M", name, d.Pool, name, d.Pool)
	}

	return d, nil
}
