package state

import (
	"context"
	"errors"
	"fmt"

	"bijou/state/charm"
)

// PlaceNew is the placement on a new machine.
const PlaceNew = "new"

// Placement says where a unit goes: Machine is PlaceNew, a machine's id, or
// empty for what the provider prefers (machine 0 on "local", a new machine
// elsewhere).
type Placement struct {
	Machine string
}

// AddUnit adds a unit to a service and puts it on a machine, a new one where
// none fits. ErrNotFound (service, machine), ErrDead.
func (tx *Tx) AddUnit(service string, p Placement) (Unit, error) {
	u, err := tx.addUnit(service, p)
	if err != nil {
		return Unit{}, fmt.Errorf("cannot add unit to service %q: %w", service, err)
	}
	return u, nil
}

func (tx *Tx) addUnit(service string, p Placement) (Unit, error) {
	s, err := tx.aliveService(service)
	if err != nil {
		return Unit{}, err
	}
	if s.Subordinate {
		return Unit{}, errors.New("it is a subordinate: its units come with those of the service that it is related to")
	}
	machine, err := tx.place(s, p)
	if err != nil {
		return Unit{}, err
	}
	return tx.insertUnit(Unit{Service: service, Machine: machine, Series: s.Series})
}

// insertUnit writes a new unit of its service under the next number.
func (tx *Tx) insertUnit(u Unit) (_ Unit, err error) {
	if u.Number, err = tx.next(unitCounter(u.Service)); err != nil {
		return Unit{}, err
	}
	u.Name, u.Life = charm.UnitName(u.Service, u.Number), Alive
	if err := tx.put(machineUnitKey(u.Machine, u.Name), struct{}{}); err != nil {
		return Unit{}, err
	}
	return u, tx.put(unitKey(u.Name), u)
}

// AddUnits adds n units in batches. On an error it returns those that were added.
func (s *State) AddUnits(ctx context.Context, service string, n int, p Placement) ([]Unit, error) {
	update := counted(ctx, s.Update, Progress{What: "units of " + service + " added", Total: n})
	return added(ctx, update, n, func(tx *Tx) (Unit, error) { return tx.AddUnit(service, p) })
}

// place finds or makes the machine of a service's new unit.
func (tx *Tx) place(s Service, p Placement) (id string, err error) {
	if p.Machine == "" {
		env, err := tx.Environment()
		if err != nil {
			return "", err
		}
		p.Machine = PlaceNew
		if env.Provider == ProviderLocal {
			return "0", nil // a folder of the host: it has the series that its units have
		}
	}
	if p.Machine == PlaceNew {
		m, err := tx.AddMachine(MachineSpec{Series: s.Series})
		return m.ID, err
	}
	m, err := tx.Machine(p.Machine)
	switch {
	case err != nil:
		return "", err
	case m.Life != Alive:
		return "", refuse(ErrDead, "machine %s is %s", m.ID, m.Life)
	case m.Series != s.Series && !tx.isLocal():
		return "", fmt.Errorf("machine %s has series %q, the service %q", m.ID, m.Series, s.Series)
	}
	return m.ID, nil
}

// isLocal says if machines are folders of this host, whose series is a name only.
func (v *View) isLocal() bool {
	env, err := v.Environment()
	return err == nil && env.Provider == ProviderLocal
}
