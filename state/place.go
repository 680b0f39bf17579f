package state

import (
	"errors"
	"fmt"
	"slices"
)

// PlaceNew is the placement on a new machine.
const PlaceNew = "new"

// Placement says where a unit goes: Machine is PlaceNew, a machine's id, or
// empty for what the provider prefers: machine 0 on "local" unless the unit asks
// for something, elsewhere a machine of its own, added before or new.
type Placement struct {
	Machine string
}

// placeUnit finds or makes the machine of a new unit, and answers its id.
func (tx *Tx) placeUnit(u Unit, env Environment, p Placement) (id string, err error) {
	switch {
	case p.Machine == PlaceNew:
		return tx.addMachineFor(u)
	case p.Machine != "":
		return p.Machine, tx.checkHost(u, env, p.Machine)
	case env.Provider == ProviderLocal && !u.Constraints.Asks():
		return "0", nil
	}
	id, err = tx.takeUnused(u)
	if id != "" || err != nil {
		return id, err
	}
	return tx.addMachineFor(u)
}

// addMachineFor makes a machine for a unit, which it is like.
func (tx *Tx) addMachineFor(u Unit) (id string, err error) {
	m, err := tx.insertMachine(Machine{Series: u.Series, Constraints: u.Constraints})
	if err != nil {
		return "", err
	}
	return m.ID, tx.put(firstUnitKey(m.ID), firstUnit{Made: true})
}

// checkHost refuses a machine that the unit cannot be put on. Machine 0 of "local"
// takes what was deployed before its series was known, too.
func (tx *Tx) checkHost(u Unit, env Environment, id string) error {
	m, err := tx.Machine(id)
	switch {
	case err != nil:
		return err
	case m.Life != Alive:
		return refuse(ErrDead, "machine %s is %s", m.ID, m.Life)
	case !slices.Contains(m.Jobs, JobUnits):
		return fmt.Errorf("machine %s does not host units", m.ID)
	case m.Series != u.Series && (id != "0" || env.Provider != ProviderLocal):
		return fmt.Errorf("machine %s has series %q, the service %q", m.ID, m.Series, u.Series)
	}
	return tx.occupyMachine(id)
}

// firstUnit is the record of a machine that has, or has had, one unit only: if that leaves
// before anything was installed, the machine is as good as new.
type firstUnit struct {
	Made bool `json:"made,omitempty"` // the machine was made for it
}

// occupyMachine notes that a machine is about to host a unit.
func (tx *Tx) occupyMachine(id string) error {
	_, spare, err := tx.get(unusedMachineKey(id))
	if err != nil {
		return err
	}
	if spare {
		tx.remove(unusedMachineKey(id))
		return tx.put(firstUnitKey(id), firstUnit{})
	}
	_, first, err := tx.get(firstUnitKey(id))
	if first {
		tx.remove(firstUnitKey(id))
	}
	return err
}

// releaseMachine lets go of the machine of a unit that leaves before anything was installed. It is spare
// if it has hosted no other unit; started is false where there is no instance of it yet: then
// one that was made for the unit is removed instead, so that none is started for nobody.
func (tx *Tx) releaseMachine(u Unit, started bool) error {
	first, ok, err := load[firstUnit](tx.View, firstUnitKey(u.Machine))
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
	tx.remove(firstUnitKey(m.ID))
	return tx.put(unusedMachineKey(m.ID), unusedMachine{Series: m.Series, Constraints: m.Constraints})
}

// maxUnusedLooked bounds how many spare machines are looked at for one unit, since each
// is a condition of the transaction. More than that are of no use all at once.
const maxUnusedLooked = 16

// takeUnused answers the first machine, by number, that was made without a unit,
// never had one, and fits; "" if there is none.
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

// listFitting lists the spare machines that a unit could go to. It makes no
// condition, since spare machines come and go.
func (v *View) listFitting(u Unit) (ids []string, err error) {
	kvs, err := v.listUnguarded(unusedMachinesPrefix)
	if err != nil {
		return nil, err
	}
	for _, kv := range kvs {
		s, err := decode[unusedMachine](kv)
		if err != nil {
			return nil, err
		}
		if s.Series == u.Series && s.Constraints.Satisfies(u.Constraints) {
			ids = append(ids, kv.Key[len(unusedMachinesPrefix):])
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids, nil
}
