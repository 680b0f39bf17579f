package juju

import (
	"context"
	"fmt"
	"slices"

	"bijou/multicall/console"
	"bijou/state"
)

type removeUnitCmd struct {
	Units    []string `arg:"" name:"unit" help:"The units; with --num-units, applications."`
	NumUnits int      `placeholder:"N" help:"Remove the N newest units of each application."`
	Force    bool     `help:"Remove the units at once, without hooks."`
	unitRemovalFlags
	waitFlags
}

// Run marks all units as dying, or none. It removes a unit at once if no agent has run for the unit, and none can start
// on its machine. With --force it first checks all units, and then removes them one after another, without hooks. With
// --destroy-storage it also marks their storage for removal.
func (c removeUnitCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		// Without --force, the kind has no remove, and check itself makes the units dying, all in one transaction.
		k := removalKind{
			name:        "unit",
			outcome:     "leaves its relations, runs its stop hook, and is removed",
			check:       c.destroyUnit,
			awaitsHooks: true,
		}
		if c.Force {
			remove := func(ctx context.Context, name string) error {
				if c.DestroyStorage {
					if err := s.Update(ctx, func(tx *state.Tx) error { return tx.RemoveUnitStorage(name) }); err != nil {
						return err
					}
				}
				return s.ForceRemoveUnit(ctx, name)
			}
			k = removalKind{name: "unit", outcome: "is gone", check: checkUnitRemovable, remove: remove}
		}

		units, err := state.Read(o.ctx, s, c.chooseUnits)
		if err != nil {
			return err
		}

		return c.removeUnits(o, s, k, units)
	})
}

// chooseUnits returns the units to remove: the units that the arguments name or, with --num-units, the newest
// units of each application that the arguments name. It does not count units that are already being removed.
func (c removeUnitCmd) chooseUnits(v *state.View) (chosen []string, err error) {
	if c.NumUnits == 0 {
		return c.Units, nil
	}

	for _, service := range c.Units {
		if _, err := v.Service(service); err != nil {
			return nil, err
		}
		units, err := v.Units(service)
		if err != nil {
			return nil, err
		}

		units = slices.DeleteFunc(units, func(u state.Unit) bool { return u.Life != state.Alive })
		if c.NumUnits < 0 || c.NumUnits > len(units) {
			return nil, fmt.Errorf("cannot remove %s of application %q, which has %d",
				formatCount(c.NumUnits, "unit"), service, len(units))
		}

		// v.Units sorts by number, so the newest units are the last.
		for _, u := range units[len(units)-c.NumUnits:] {
			chosen = append(chosen, u.Name)
		}
	}

	return chosen, nil
}

// destroyUnit marks one unit for removal, with its storage if --destroy-storage is given.
func (c removeUnitCmd) destroyUnit(tx *state.Tx, name string) error {
	err := checkUnitRemovable(tx, name)
	if err != nil {
		return err
	}
	if c.DestroyStorage {
		if err := tx.RemoveUnitStorage(name); err != nil {
			return err
		}
	}

	return tx.DestroyUnit(name)
}

// checkUnitRemovable returns an error if the unit does not exist. It also returns an error for a subordinate that is
// alive, even with --force, since its principal would be left without the subordinate.
func checkUnitRemovable(tx *state.Tx, name string) error {
	u, err := tx.Unit(name)
	if err != nil {
		return err
	}
	if u.Principal != "" && u.Life == state.Alive {
		return console.Hint(fmt.Errorf("cannot remove unit %q: it is a subordinate, and is removed together with %q",
			name, u.Principal),
			fmt.Sprintf("remove %s, or end the relation between the two applications", u.Principal))
	}

	return nil
}
