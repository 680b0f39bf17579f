package juju

import (
	"errors"

	"bijou/multicall/console"
	"bijou/state"
)

type startCmd struct {
	Moved   bool   `help:"Run the model from this directory and host from now on, and confirm that the previous agents are gone for good or will end."`
	Machine string `placeholder:"ID" help:"Let the first agent that starts for machine ID run it, instead of moving the machines of this directory; with --moved."`
}

// Run starts the environment's background process, unless it is running. With --moved it first claims machine 0 for
// this directory and, in a local environment, all other machines in the directory. With --moved and --machine it
// starts nothing, and only takes that machine's claim from its holder, for the first agent that takes it then.
func (c startCmd) Run(o *operator) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}

	switch {
	case c.Machine != "" && !c.Moved:
		return console.Usage(errors.New("--machine needs --moved: --machine names the machine that has moved"))
	case c.Machine != "":
		return o.openState(e, func(s *state.State) error {
			// With nil as the new holder, the first agent that takes the claim gets it.
			return s.Update(o.ctx, func(tx *state.Tx) error { return tx.ReassignClaim(c.Machine, nil) })
		})
	case c.Moved:
		e, err = o.claimMachines(e)
		if err != nil {
			return err
		}
	}

	// awaitOther also waits for a process that is about to run machine 0, or to end.
	pid, err := o.awaitOther(e)
	if err != nil {
		return err
	}
	if pid != 0 {
		o.note("the background process of model %q already runs, %s", e.Name, o.describeProcess(pid))
		return nil
	}

	return o.startBackground(e)
}
