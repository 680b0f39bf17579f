package state

import (
	"context"
	"errors"
	"fmt"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// DestroyUnit makes a unit dying, and its subordinates with it, for their agents to take them
// down. A unit that no agent has touched, on a machine that neither has an instance nor runs, is
// removed at once, and with it the machine if it was made for the unit.
func (tx *Tx) DestroyUnit(name string) error {
	u, err := tx.Unit(name)
	if err != nil || u.Life == Dead {
		return err
	}

	u.Life = Dying
	if err := tx.keys.Put(keys.Unit(name), u); err != nil {
		return err
	}
	if err := tx.destroySubordinates(u); err != nil {
		return err
	}

	untouched, err := tx.isUntouched(u)
	if err != nil || !untouched {
		return err
	}
	if err := tx.RemoveUnit(name); err != nil {
		return err
	}

	return tx.releaseMachine(u, false)
}

// isUntouched reports whether nothing ever ran for the unit, and nothing is about to.
func (v *View) isUntouched(u Unit) (bool, error) {
	m, err := v.Machine(u.Machine)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, err
	}
	if m.InstanceID != "" || m.Status == MachineRunning {
		return false, nil
	}

	_, present, err := v.keys.Get(keys.Presence(UnitAgent(u.Name)))
	if err != nil || present {
		return false, err
	}
	kvs, err := v.keys.List(keys.Uniter(u.Name))
	return len(kvs) == 0, err
}

// RemoveUnit removes a unit that is dying or dead with everything that is its own: relation
// memberships, agent records, ports, presence. Subordinates that it still has are dying from then
// on. Its logs and its settings in relations stay. A dying service goes with its last unit, and the
// machine of a dead one on which nothing was installed is unused again. An alive unit is refused with
// ErrInUse. The function RemoveUnit works in batches, for units of many relations.
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
	if err := tx.releaseUnitStorage(name); err != nil {
		return err
	}

	if err := tx.releaseUntouched(u); err != nil {
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

	for _, prefix := range []string{keys.Uniter(name), keys.Unit(name) + "/"} {
		if _, err := tx.keys.RemoveBelow(prefix, keyspace.MaxRemovedKeys); err != nil {
			return err
		}
	}

	tx.RemoveRequest(Request{Unit: name, Kind: RequestRemoval, Relation: NoRelation})
	tx.keys.Remove(keys.Unit(name), keys.MachineUnit(u.Machine, name), keys.Presence(UnitAgent(name)))
	return tx.removeServiceIfDone(u.Service)
}

// releaseUntouched releases the machine of a dead unit on which nothing was installed.
func (tx *Tx) releaseUntouched(u Unit) error {
	if u.Life != Dead {
		return nil
	}

	w, err := tx.Workflow(u.Name)
	if err != nil || w.Charm != "" || w.State != "" || u.Charm != "" {
		return err
	}

	return tx.releaseMachine(u, true)
}

// joinedRelations makes no condition: a dying or dead unit enters no other relation.
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
		in, err := v.keys.HasUnguarded(keys.Member(id, u.Name))
		if err != nil {
			return nil, err
		}

		if in {
			ids = append(ids, id)
		}
	}

	return ids, nil
}

// RemoveUnit removes a dying or dead unit however much it has, each transaction under the conditions of
// update: one if the unit has little, else batches. A unit that is gone already is no error; an alive one
// is ErrInUse.
func RemoveUnit(ctx context.Context, update Updater, name string) error {
	for gone := false; !gone; {
		err := update(ctx, func(tx *Tx) (err error) {
			gone, err = tx.removeUnitBatch(name)
			return err
		})
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot remove unit %q: %w", name, err)
		}
	}

	return nil
}

// removeUnitBatch removes the unit, or if it has too much for that some of its memberships, its
// history and some of its agent's records.
func (tx *Tx) removeUnitBatch(name string) (gone bool, err error) {
	u, err := tx.Unit(name)
	if err != nil {
		return false, err
	}
	if u.Life == Alive {
		return false, refuse(ErrInUse, "it is alive")
	}

	relations, err := tx.joinedRelations(u)
	if err != nil {
		return false, err
	}
	past, err := tx.keys.ListUnguarded(keys.UnitHistory(name))
	if err != nil {
		return false, err
	}
	records, err := tx.keys.ListUnguarded(keys.Uniter(name))
	if err != nil {
		return false, err
	}

	if len(relations) <= keyspace.MaxFewRemoved && len(past)+len(records) <= keyspace.MaxRemovedKeys {
		if _, err := tx.keys.RemoveBelow(keys.UnitHistory(name), MaxHookRuns); err != nil {
			return false, err
		}
		return true, tx.RemoveUnit(name)
	}

	for _, id := range relations[:min(keyspace.MaxFewRemoved, len(relations))] {
		if err := tx.LeaveRelation(id, name); err != nil {
			return false, err
		}
	}

	if len(past) > 0 { // which is a transaction of its own
		_, err := tx.keys.RemoveBelow(keys.UnitHistory(name), MaxHookRuns)
		return false, err
	}

	// The workflow stays to the end: the machine of a unit that has none counts as untouched.
	for _, prefix := range []string{keys.UniterRelations(name), keys.UniterServices(name)} {
		if _, err := tx.keys.RemoveBelow(prefix, keyspace.MaxRemovedKeys); err != nil {
			return false, err
		}
	}

	return false, nil
}
