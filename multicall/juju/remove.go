package juju

import (
	"errors"
	"fmt"

	"bijou/multicall/console"
	"bijou/state"
)

// removeUnitCmd is `juju remove-unit`.
type removeUnitCmd struct {
	Units []string `arg:"" name:"unit" help:"The units."`
	Force bool     `help:"At once, without hooks, whatever the agent does."`
}

// Help shows how it is used.
func (removeUnitCmd) Help() string {
	return `The unit leaves its relations, runs its stop hook, and is gone.

Examples:
  juju remove-unit mysql/1
  juju destroy-unit wordpress/0 wordpress/2
  juju remove-unit mysql/1 --force`
}

// Run makes the units dying, each by itself.
func (c removeUnitCmd) Run(o *operator) error {
	return o.open(func(s *state.State) error {
		var errs []error
		for _, name := range c.Units {
			err := s.Update(o.ctx, func(tx *state.Tx) error { return removeUnit(tx, name, c.Force) })
			if c.Force && err == nil {
				err = s.ForceRemoveUnit(o.ctx, name)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// removeUnit makes a unit dying, unless it is one that comes and goes with another:
// by force, too, its principal would be left without.
func removeUnit(tx *state.Tx, name string, force bool) error {
	u, err := tx.Unit(name)
	if err != nil {
		return err
	}
	if u.Principal != "" && u.Life == state.Alive {
		return console.Hint(fmt.Errorf("cannot remove unit %q: it is a subordinate of %q and leaves with it", name, u.Principal),
			fmt.Sprintf("remove %s, or end the relation between the two services", u.Principal))
	}
	if force {
		return nil
	}
	return tx.DestroyUnit(name)
}

// destroyServiceCmd is `juju destroy-service`.
type destroyServiceCmd struct {
	Services []string `arg:"" name:"service" help:"The services."`
	Force    bool     `help:"At once, without its units' hooks, whatever their agents do."`
}

// Help shows how it is used.
func (destroyServiceCmd) Help() string {
	return `Its relations end, its units run their stop hooks, and it is gone with the last of them.

Examples:
  juju destroy-service wordpress
  juju destroy-service wordpress mysql`
}

// Run makes the services dying, each by itself.
func (c destroyServiceCmd) Run(o *operator) error {
	return o.open(func(s *state.State) error {
		var errs []error
		for _, name := range c.Services {
			destroy := s.DestroyService
			if c.Force {
				destroy = s.ForceDestroyService
			}
			errs = append(errs, destroy(o.ctx, name))
		}
		return errors.Join(errs...)
	})
}

// destroyMachineCmd is `juju destroy-machine`.
type destroyMachineCmd struct {
	Machines []string `arg:"" name:"machine" help:"The machines' ids."`
	Force    bool     `help:"Take units that are on it along, whatever they do."`
}

// Help shows how it is used.
func (destroyMachineCmd) Help() string {
	return `Its agent ends, its instance is stopped, and it is gone.

Examples:
  juju destroy-machine 2
  juju destroy-machine 2 3 --force`
}

// Run makes the machines dying, each by itself.
func (c destroyMachineCmd) Run(o *operator) error {
	return o.open(func(s *state.State) error {
		var errs []error
		for _, id := range c.Machines {
			errs = append(errs, s.DestroyMachine(o.ctx, id, c.Force))
		}
		return errors.Join(errs...)
	})
}
