package state

import (
	"errors"
	"slices"

	"bijou/state/constraints"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// unusedMachine is the record of a machine that has never hosted a unit: what a unit
// must know of it to be put there.
type unusedMachine struct {
	Series      string            `json:"series"`
	Constraints constraints.Value `json:"constraints,omitzero"`
}

// firstUnit is the record of a machine that has, or has had, one unit only: if that
// leaves before anything was installed, the machine is as good as new.
type firstUnit struct {
	Made bool `json:"made,omitempty"` // the machine was made for it
}

// occupyMachine records that a machine is about to host a unit: it is unused no more,
// and its first unit is only the first.
func (tx *Tx) occupyMachine(id string) error {
	_, spare, err := tx.keys.Get(keys.UnusedMachine(id))
	if err != nil {
		return err
	}
	if spare {
		tx.keys.Remove(keys.UnusedMachine(id))
		return tx.keys.Put(keys.FirstUnit(id), firstUnit{})
	}
	_, first, err := tx.keys.Get(keys.FirstUnit(id))
	if first {
		tx.keys.Remove(keys.FirstUnit(id))
	}
	return err
}

// releaseMachine is called for a unit that leaves before anything was installed. Its
// machine is unused again if it has hosted no other unit; started is false where it has
// no instance yet: then a machine that was made for the unit is removed instead, so that
// none is started for nobody.
func (tx *Tx) releaseMachine(u Unit, started bool) error {
	first, ok, err := keyspace.Load[firstUnit](tx.keys, keys.FirstUnit(u.Machine))
	if err != nil || !ok || u.Principal != "" {
		return err
	}
	m, err := tx.Machine(u.Machine)
	if err != nil || m.Life != Alive {
		return err
	}
	if first.Made && !started {
		return tx.RemoveMachine(m.ID)
	}
	tx.keys.Remove(keys.FirstUnit(m.ID))
	return tx.keys.Put(keys.UnusedMachine(m.ID), unusedMachine{Series: m.Series, Constraints: m.Constraints})
}

// maxUnusedLooked bounds how many unused machines are read for one unit, since each is a
// condition of the transaction. More than that are of no use all at once.
const maxUnusedLooked = 16

// takeUnused returns the first machine, by number, that never had a unit and fits; "" if
// there is none.
func (tx *Tx) takeUnused(u Unit) (id string, err error) {
	ids, err := tx.listFitting(u)
	if err != nil {
		return "", err
	}
	for _, id := range ids[:min(maxUnusedLooked, len(ids))] {
		m, err := tx.Machine(id)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		if m.Life == Alive && m.Status != MachineError {
			return id, tx.occupyMachine(id)
		}
	}
	return "", nil
}

// listFitting makes no condition, since unused machines come and go.
func (v *View) listFitting(u Unit) (ids []string, err error) {
	kvs, err := v.keys.ListUnguarded(keys.UnusedMachines)
	if err != nil {
		return nil, err
	}
	for _, kv := range kvs {
		s, err := keyspace.Decode[unusedMachine](kv)
		if err != nil {
			return nil, err
		}
		if s.Series == u.Series && s.Constraints.Satisfies(u.Constraints) {
			ids = append(ids, kv.Key[len(keys.UnusedMachines):])
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids, nil
}

// updateUnused writes the machine's new constraints where units look for unused
// machines.
func (tx *Tx) updateUnused(m Machine) error {
	_, there, err := tx.keys.Get(keys.UnusedMachine(m.ID))
	if err != nil || !there {
		return err
	}
	return tx.keys.Put(keys.UnusedMachine(m.ID), unusedMachine{Series: m.Series, Constraints: m.Constraints})
}
