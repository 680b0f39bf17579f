package juju

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/status"
)

// removalFlags are those of all commands that remove several things.
type removalFlags struct {
	DryRun bool   `help:"Only say what would be done."`
	Format string `enum:"plain,yaml,json" default:"plain" placeholder:"FORMAT" help:"plain, yaml or json; default plain."`

	NoPrompt bool `hidden:"" help:"As it is: it never asks."`
}

// unitRemovalFlags are those of the commands that units leave by.
type unitRemovalFlags struct {
	DestroyStorage bool `help:"Remove their storage, too, with all that it holds; without it that stays, detached."`
	removalFlags
}

type removalKind struct {
	name    string // "unit"
	outcome string // what happens to one, by and by
	// check refuses what cannot be removed. If remove is nil, check itself removes, all names
	// in one transaction.
	check  func(tx *state.Tx, name string) error
	remove func(ctx context.Context, name string) error
	// awaitsHooks: units run their hooks before one is gone.
	awaitsHooks bool
}

// removeAll checks all names before it removes any.
func (r removalFlags) removeAll(o *operator, s *state.State, k removalKind, names []string) error {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	check := func(tx *state.Tx) error {
		var refused []error
		for _, name := range names {
			if err := k.check(tx, name); err != nil {
				refused = append(refused, err)
			}
		}
		return joinErrors(refused)
	}
	var err error
	if r.DryRun || k.remove != nil {
		err = s.Rehearse(o.ctx, func(r *state.Rehearsal) error { return r.Update(o.ctx, check) })
	} else {
		err = s.Update(o.ctx, check)
	}
	if err != nil {
		return console.Hint(err, "nothing was changed")
	}
	for i, name := range names {
		if r.DryRun || k.remove == nil {
			break
		}
		if err := k.remove(o.ctx, name); err != nil && !errors.Is(err, state.ErrNotFound) {
			return console.Hint(err, "removed before that: "+strings.Join(names[:i], ", "))
		}
	}
	if !r.DryRun {
		o.affect(untilGone, names...)
	}
	if err := r.printRemoved(o, k, names); err != nil || !k.awaitsHooks {
		return err
	}
	serviceOf := func(name string) string { service, _, _ := strings.Cut(name, "/"); return service }
	var services []string
	for _, name := range names {
		services = append(services, serviceOf(name))
	}
	leaves := func(unit string) bool {
		return slices.Contains(names, unit) || slices.Contains(names, serviceOf(unit))
	}
	o.noteErrors(s, services, func(name string, u status.Unit, relation string) bool {
		going := leaves(name) || leaves(u.Principal)
		if going && relation == "" && u.Info.Hook == "install" {
			o.note("%s goes without hooks: its install has failed", name)
			return false
		}
		return going
	})
	return nil
}

// removeUnits is removeAll for units, and for services with all of theirs. It says what becomes of
// their storage.
func (r unitRemovalFlags) removeUnits(o *operator, s *state.State, k removalKind, names []string) error {
	all, err := state.Read(o.ctx, s, (*state.View).Storages)
	if err == nil {
		err = r.removeAll(o, s, k, names)
	}
	if err != nil {
		return err
	}
	for _, one := range all {
		service, _, _ := strings.Cut(one.Unit, "/")
		switch {
		case !one.Made || !slices.Contains(names, one.Unit) && !slices.Contains(names, service):
		case r.DestroyStorage:
			o.note("storage %s goes with it, and all that it holds", one.ID)
		default:
			o.note("storage %s stays on machine %s with what it holds; juju remove-storage %s removes it", one.ID, one.Machine, one.ID)
		}
	}
	return nil
}

func (r removalFlags) printRemoved(o *operator, k removalKind, names []string) error {
	if r.Format != "plain" {
		return o.encode(r.Format, map[string]any{k.name + "s": names, "dry-run": r.DryRun})
	}
	to, would := o.streams.Err, ""
	if r.DryRun {
		to, would = o.streams.Out, "dry run: "
	}
	for _, name := range names {
		fmt.Fprintf(to, "%s%s %s %s\n", would, k.name, name, k.outcome)
	}
	return nil
}

type removeUnitCmd struct {
	Units    []string `arg:"" name:"unit" help:"The units; with --num-units, services."`
	NumUnits int      `placeholder:"N" help:"Of each service that many units, the newest."`
	Force    bool     `help:"At once, without hooks, whatever the agent does."`
	unitRemovalFlags
	waitFlags
}

// Run makes the units dying, all or none.
func (c removeUnitCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		k := removalKind{"unit", "leaves its relations, runs its stop hook, and goes", c.destroyUnit, nil, true}
		if c.Force {
			k = removalKind{"unit", "is gone", checkUnitRemovable, func(ctx context.Context, name string) error {
				if c.DestroyStorage {
					if err := s.Update(ctx, func(tx *state.Tx) error { return tx.RemoveUnitStorage(name) }); err != nil {
						return err
					}
				}
				return s.ForceRemoveUnit(ctx, name)
			}, false}
		}
		units, err := state.Read(o.ctx, s, c.chooseUnits)
		if err != nil {
			return err
		}
		return c.removeUnits(o, s, k, units)
	})
}

// chooseUnits leaves units out that go already.
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
			return nil, fmt.Errorf("cannot remove %s of service %q: it has %d", formatCount(c.NumUnits, "unit"), service, len(units))
		}
		for _, u := range units[len(units)-c.NumUnits:] {
			chosen = append(chosen, u.Name)
		}
	}
	return chosen, nil
}

func (c removeUnitCmd) destroyUnit(tx *state.Tx, name string) error {
	err := checkUnitRemovable(tx, name)
	if err == nil && c.DestroyStorage {
		err = tx.RemoveUnitStorage(name)
	}
	if err != nil {
		return err
	}
	return tx.DestroyUnit(name)
}

// checkUnitRemovable refuses a subordinate, by force, too: its principal would be left without.
func checkUnitRemovable(tx *state.Tx, name string) error {
	u, err := tx.Unit(name)
	if err == nil && u.Principal != "" && u.Life == state.Alive {
		err = console.Hint(fmt.Errorf("cannot remove unit %q: it is a subordinate of %q and leaves with it", name, u.Principal),
			fmt.Sprintf("remove %s, or end the relation between the two services", u.Principal))
	}
	return err
}

type destroyServiceCmd struct {
	Services []string `arg:"" name:"service" help:"The services."`
	Force    bool     `help:"At once, without its units' hooks, whatever their agents do."`
	unitRemovalFlags
	waitFlags
}

// Run makes the services dying, once all are known to be there.
func (c destroyServiceCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		exists := func(tx *state.Tx, name string) error { _, err := tx.Service(name); return err }
		k := removalKind{"service", "goes with its relations and units, once these have run their stop hooks", exists, s.DestroyService, true}
		if c.Force {
			k.outcome, k.remove, k.awaitsHooks = "is gone, with its relations and units", s.ForceDestroyService, false
		}
		if remove := k.remove; c.DestroyStorage {
			k.remove = func(ctx context.Context, name string) error {
				if err := s.RemoveServiceStorage(ctx, name); err != nil {
					return err
				}
				return remove(ctx, name)
			}
		}
		return c.removeUnits(o, s, k, c.Services)
	})
}

type destroyMachineCmd struct {
	Machines []string `arg:"" name:"machine" help:"The machines' ids."`
	Force    bool     `help:"Take units that are on it along, whatever they do."`
	removalFlags
}

// Run makes the machines dying, all or none.
func (c destroyMachineCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		k := removalKind{"machine", "goes, once its agent has ended and its instance is stopped", (*state.Tx).DestroyMachine, nil, false}
		if c.Force {
			k.check = func(tx *state.Tx, id string) error {
				if id == "0" {
					return tx.DestroyMachine(id) // which says why not
				}
				_, err := tx.Machine(id)
				return err
			}
			k.remove = func(ctx context.Context, id string) error { return s.DestroyMachine(ctx, id, true) }
		}
		return c.removeAll(o, s, k, c.Machines)
	})
}
