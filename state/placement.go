package state

import (
	"fmt"
	"slices"

	"bijou/state/keys"
)

// PlaceNew places a unit on a new machine.
const PlaceNew = "new"

// Placement selects the machine of a unit: Machine is PlaceNew, a machine's id, or empty
// for what the provider prefers: machine 0 on "local" unless the unit asks for
// something, elsewhere a machine of its own, added before or new.
type Placement struct {
	Machine string
}

// placeUnit returns the id of a new unit's machine, which it adds where none fits.
func (tx *Tx) placeUnit(u Unit, env Environment, p Placement) (id string, err error) {
	switch {
	case p.Machine == PlaceNew:
		return tx.addMachineFor(u)
	case p.Machine != "":
		return p.Machine, tx.checkHost(u, env, p.Machine)
	case env.Provider == ProviderLocal && !u.Constraints.AsksAnything():
		return "0", nil
	}
	id, err = tx.takeUnused(u)
	if id != "" || err != nil {
		return id, err
	}
	return tx.addMachineFor(u)
}

func (tx *Tx) addMachineFor(u Unit) (id string, err error) {
	m, err := tx.insertMachine(Machine{Series: u.Series, Constraints: u.Constraints})
	if err != nil {
		return "", err
	}
	return m.ID, tx.keys.Put(keys.FirstUnit(m.ID), firstUnit{Made: true})
}

// checkHost refuses a machine that the unit cannot be put on. Machine 0 of "local" takes
// what was deployed before its series was known, too.
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
