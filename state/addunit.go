package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/progress"
)

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
	env, err := tx.Environment()
	if err != nil {
		return Unit{}, err
	}
	u := Unit{Service: service, Series: s.Series, Constraints: s.Constraints.Over(env.Constraints)}
	if u.Machine, err = tx.placeUnit(u, env, p); err != nil {
		return Unit{}, err
	}
	return tx.insertUnit(u)
}

func (tx *Tx) insertUnit(u Unit) (_ Unit, err error) {
	if u.Number, err = tx.keys.NextNumber(keys.UnitCounter(u.Service)); err != nil {
		return Unit{}, err
	}
	u.Name, u.Life = charm.UnitName(u.Service, u.Number), Alive
	u.Status.Since = time.Now().UTC().Round(0)
	if err := tx.keys.Put(keys.MachineUnit(u.Machine, u.Name), struct{}{}); err != nil {
		return Unit{}, err
	}
	return u, tx.keys.Put(keys.Unit(u.Name), u)
}

// AddUnits adds n units in batches. On an error it returns those that were added.
func (s *State) AddUnits(ctx context.Context, service string, n int, p Placement) ([]Unit, error) {
	update := withProgress(ctx, s.Update, progress.Steps{What: "units of " + service + " added", Total: n})
	return addInBatches(ctx, update, n, func(tx *Tx) (Unit, error) { return tx.AddUnit(service, p) })
}
