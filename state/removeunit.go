package state

import (
	"context"
	"errors"
	"fmt"
	"math"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// DestroyUnit makes a unit and its subordinates dying, so that their agents shut them down. It removes the
// unit at once if no agent has run for the unit, and the unit's machine has no instance and is not running. Then
// it also removes a machine that was created for the unit, and marks a machine that was unused before as unused again.
// But a machine that has got another unit in the meantime, or is not alive, stays as it is. DestroyUnit does nothing
// for a dead unit.
func (tx *Tx) DestroyUnit(name string) error {
	u, err := tx.Unit(name)
	if err != nil {
		return err
	}
	if u.Life == Dead {
		return nil
	}

	u.Life = Dying
	if err := tx.keys.Put(keys.Unit(name), u); err != nil {
		return err
	}
	if err := tx.destroySubordinates(u); err != nil {
		return err
	}

	untouched, err := tx.isUntouched(u)
	if err != nil {
		return err
	}
	if !untouched {
		return nil
	}
	if err := tx.RemoveUnit(name); err != nil {
		return err
	}

	return tx.releaseMachine(u, neverStarted) // also removes a machine that was created for the unit
}

// isUntouched reports whether no agent has run for the unit, and none can start on its machine.
func (v *View) isUntouched(u Unit) (bool, error) {
	m, err := v.Machine(u.Machine)
	// On a machine that is gone, no agent can start.
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, err
	}
	if m.InstanceID != "" || m.Status == MachineRunning {
		return false, nil
	}

	_, present, err := v.keys.Get(keys.Presence(UnitAgent(u.Name)))
	if err != nil {
		return false, err
	}
	if present {
		return false, nil
	}
	// An agent that has run has left records. A new record makes the commit fail.
	kvs, err := v.keys.List(keys.Uniter(u.Name))
	return len(kvs) == 0, err
}

// RemoveUnit removes a dying or dead unit with its relation memberships, agent records, ports and presence, and
// releases its storage. Its logs, its history of hooks and its settings in relations stay. RemoveUnit destroys any
// remaining subordinates, as [Tx.DestroyUnit] does. A dying service is removed with its last unit. If the unit is dead
// and its agent has installed nothing, an alive machine that was unused before, or was created for the unit, counts as
// unused again, unless it has got another unit in the meantime. RemoveUnit returns ErrInUse if the unit is alive.
//
// Units with many relations or records do not fit in one transaction: for them, call the function [RemoveUnit].
func (tx *Tx) RemoveUnit(name string) error {
	u, err := tx.Unit(name)
	if err != nil {
		return err
	}

	if u.Life == Alive {
		return refuse(ErrInUse, "cannot remove unit %q: it is alive", name)
	}
	if err := tx.destroySubordinates(u); err != nil {
		return err
	}
	if err := tx.leavePrincipal(u); err != nil {
		return err
	}

	// Without a limit, no storage is left in the unit's list.
	if _, err := tx.releaseUnitStorage(name, math.MaxInt); err != nil {
		return err
	}

	// This reads the workflow, which is removed below.
	if err := tx.releaseCleanMachine(u); err != nil {
		return err
	}

	relations, err := tx.joinedRelations(u)
	if err != nil {
		return err
	}

	for _, id := range relations {
		if err := tx.LeaveRelation(id, name); err != nil {
			return err
		}
	}

	// The limit suffices for all keys: removeUnitBatch has counted the agent's records, a unit that no agent
	// has touched has none, and only a few keys are below a unit.
	for _, prefix := range []string{keys.Uniter(name), keys.BelowUnit(name)} {
		if _, err := tx.keys.RemoveBelow(prefix, keyspace.MaxRemovedKeys); err != nil {
			return err
		}
	}

	// The unit's removal may have been requested, and is now carried out.
	tx.RemoveRequest(Request{Unit: name, Kind: RequestRemoval, Relation: NoRelation})
	tx.keys.Remove(keys.Unit(name), keys.MachineUnit(u.Machine, name), keys.Presence(UnitAgent(name)))
	return tx.removeServiceIfDone(u.Service)
}

// releaseCleanMachine releases the machine of a dead unit if the unit's agent has not installed anything.
func (tx *Tx) releaseCleanMachine(u Unit) error {
	if u.Life != Dead {
		return nil
	}

	// Anything but an empty workflow means that the machine may have leftovers of the charm.
	w, err := tx.Workflow(u.Name)
	if err != nil {
		return err
	}
	if w.Charm != "" || w.State != "" || u.Charm != "" {
		return nil
	}

	return tx.releaseMachine(u, maybeStarted)
}

// joinedRelations lists the ids of the relations in which a dying or dead unit is a member. The reads are not
// conditions of the commit, since a unit that is not alive cannot enter further relations.
func (v *View) joinedRelations(u Unit) (ids []int, err error) {
	index, err := v.keys.ListUnguarded(keys.ServiceRelations(u.Service))
	if err != nil {
		return nil, err
	}

	for _, kv := range index {
		id, ok := keys.CutInt(kv.Key, keys.ServiceRelations(u.Service))
		if !ok {
			continue
		}
		isMember, err := v.keys.HasUnguarded(keys.Member(id, u.Name))
		if err != nil {
			return nil, err
		}

		if isMember {
			ids = append(ids, id)
		}
	}

	return ids, nil
}

// RemoveUnit removes a dying or dead unit as [Tx.RemoveUnit] does, and also the unit's history of hooks. It makes
// as many transactions as the unit's records need, and runs each of them with update. It returns nil if the unit is
// already gone, and ErrInUse if it is alive.
func RemoveUnit(ctx context.Context, update Updater, name string) error {
	for gone := false; !gone; {
		err := update(ctx, func(tx *Tx) (err error) {
			gone, err = tx.removeUnitBatch(name)
			return err
		})
		if err != nil {
			return fmt.Errorf("cannot remove unit %q: %w", name, err)
		}
	}

	return nil
}

// removeUnitBatch does as much of a unit's removal as fits in one transaction. It first releases the unit's storage.
// Once the unit has no storage, removeUnitBatch removes the unit or, if there are too many records, does what
// removeSomeRecords does. gone reports whether the unit's own record no longer exists.
func (tx *Tx) removeUnitBatch(name string) (gone bool, err error) {
	u, err := tx.Unit(name)
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if u.Life == Alive {
		return false, refuse(ErrInUse, "the unit is alive")
	}

	left, err := tx.releaseUnitStorage(name, storageBatch)
	if err != nil {
		return false, err
	}
	if left > 0 {
		return false, nil // the next batch releases more storage
	}

	relations, err := tx.joinedRelations(u)
	if err != nil {
		return false, err
	}
	history, err := tx.keys.ListUnguarded(keys.UnitHistory(name))
	if err != nil {
		return false, err
	}
	records, err := tx.keys.ListUnguarded(keys.Uniter(name))
	if err != nil {
		return false, err
	}

	// Few relations fit, since LeaveRelation can also remove the relation and the services that wait for its end.
	fits := len(relations) <= keyspace.MaxFewRemoved && len(history)+len(records) <= keyspace.MaxRemovedKeys
	if fits {
		// The limit suffices, since a history has at most MaxHookRuns keys.
		if _, err := tx.keys.RemoveBelow(keys.UnitHistory(name), MaxHookRuns); err != nil {
			return false, err
		}
		return true, tx.RemoveUnit(name)
	}

	return false, tx.removeSomeRecords(name, relations, len(history) > 0)
}

// removeSomeRecords makes the unit leave some of its relations. Then it removes the unit's history, or, if
// there is none, some of the agent's records. The next batch continues.
func (tx *Tx) removeSomeRecords(name string, relations []int, hasHistory bool) error {
	for _, id := range relations[:min(keyspace.MaxFewRemoved, len(relations))] {
		if err := tx.LeaveRelation(id, name); err != nil {
			return err
		}
	}

	// A history has at most MaxHookRuns keys, so this removes all of it. The agent's records wait for a later batch.
	if hasHistory {
		_, err := tx.keys.RemoveBelow(keys.UnitHistory(name), MaxHookRuns)
		return err
	}

	// The workflow stays until the end, since without it the machine would count as unused.
	for _, prefix := range []string{keys.UniterRelations(name), keys.UniterServices(name)} {
		if _, err := tx.keys.RemoveBelow(prefix, keyspace.MaxRemovedKeys); err != nil {
			return err
		}
	}

	return nil
}
