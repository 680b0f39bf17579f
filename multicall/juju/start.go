package juju

import (
	"errors"

	"bijou/multicall/console"
	"bijou/state"
)

type startCmd struct {
	Moved   bool   `help:"The environment runs from this folder and host from now on: what ran it from another one is gone for good, or ends."`
	Machine string `placeholder:"ID" help:"With --moved: let whoever comes first run this machine, instead of this environment's own."`
}

// Run starts the background process if it does not run.
func (c startCmd) Run(o *operator) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}

	switch {
	case c.Machine != "" && !c.Moved:
		return console.Usage(errors.New("--machine says which machine has moved: give --moved, too"))
	case c.Machine != "":
		return o.openState(e, func(s *state.State) error {
			return s.Update(o.ctx, func(tx *state.Tx) error { return tx.ReassignClaim(c.Machine, nil) })
		})
	case c.Moved:
		if e, err = o.claimMachines(e); err != nil {
			return err
		}
	}

	pid, err := o.awaitOther(e)
	if err != nil {
		return err
	}
	if pid != 0 {
		o.note("the background process of environment %q runs already, %s", e.Name, o.describeProcess(pid))
		return nil
	}

	return o.startBackground(e)
}
