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

// place finds or makes the machine of a new unit, and answers its id.
func (tx *Tx) place(u Unit, env Environment, p Placement) (id string, err error) {
	switch {
	case p.Machine == PlaceNew:
		return tx.newMachine(u)
	case p.Machine != "":
		return p.Machine, tx.checkHost(u, env, p.Machine)
	case env.Provider == ProviderLocal && !u.Constraints.Asks():
		return "0", nil
	}
	id, err = tx.takeSpare(u)
	if id != "" || err != nil {
		return id, err
	}
	return tx.newMachine(u)
}

// newMachine makes a machine for a unit, which it is like.
func (tx *Tx) newMachine(u Unit) (id string, err error) {
	m, err := tx.insertMachine(Machine{Series: u.Series, Constraints: u.Constraints})
	return m.ID, err
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
	return tx.unspare(id)
}

// unspare notes that a machine has hosted a unit, or is about to.
func (tx *Tx) unspare(id string) error {
	_, spare, err := tx.get(spareKey(id))
	if spare {
		tx.remove(spareKey(id))
	}
	return err
}

// maxSpares bounds how many spare machines are looked at for one unit, since each
// is a condition of the transaction. More than that are of no use all at once.
const maxSpares = 16

// takeSpare answers the first machine, by number, that was made without a unit,
// never had one, and fits; "" if there is none.
func (tx *Tx) takeSpare(u Unit) (id string, err error) {
	ids, err := tx.fitting(u)
	if err != nil {
		return "", err
	}
	for _, id := range ids[:min(maxSpares, len(ids))] {
		m, err := tx.Machine(id)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		if m.Life == Alive && m.Status != MachineError {
			return id, tx.unspare(id)
		}
	}
	return "", nil
}

// fitting lists the spare machines that a unit could go to. It makes no
// condition, since spare machines come and go.
func (v *View) fitting(u Unit) (ids []string, err error) {
	kvs, err := v.peek(sparesPrefix)
	if err != nil {
		return nil, err
	}
	for _, kv := range kvs {
		s, err := decode[spare](kv)
		if err != nil {
			return nil, err
		}
		if s.Series == u.Series && s.Constraints.Satisfies(u.Constraints) {
			ids = append(ids, kv.Key[len(sparesPrefix):])
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids, nil
}
