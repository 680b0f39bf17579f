package juju

import (
	"cmp"
	"errors"
	"fmt"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
)

type addMachineCmd struct {
	Placement   string   `arg:"" optional:"" help:"The host to use, as PROVIDER:WHERE, such as ssh:user@host or ssh:user@host:port."`
	Number      int      `short:"n" default:"1" placeholder:"N" help:"Add N machines; default 1."`
	Series      string   `aliases:"base" placeholder:"SERIES" help:"Set the machines' series, or base (ubuntu@24.04); default: the model's."`
	Constraints []string `sep:"none" placeholder:"\"K=V ...\"" help:"Set constraints for the machines, which override the model's."`
	Provisioner bool     `help:"Also run provisioners on the machines; if the host of the leading provisioner dies, another one takes over."`
}

// Run adds the machines and prints their ids.
func (c addMachineCmd) Run(o *operator) error {
	c.Series = charm.SeriesOfBase(c.Series)
	if err := c.check(); err != nil {
		return err
	}
	spec, err := c.machineSpec()
	if err != nil {
		return err
	}

	return o.openChosen(func(s *state.State) error {
		env, err := state.Read(o.ctx, s, (*state.View).Environment)
		if err != nil {
			return err
		}

		// The check fails if this host lacks a prerequisite of machines with the series.
		const force = false
		if err := o.checkSeries(env, cmp.Or(spec.Series, env.DefaultSeries), force); err != nil {
			return fmt.Errorf("cannot add machine: %w", err)
		}

		// Even with an error, AddMachines returns the machines that it has added.
		machines, err := s.AddMachines(o.ctx, c.Number, spec)
		for _, m := range machines {
			fmt.Fprintln(o.streams.Out, m.ID)
		}
		return withMachineHint(err)
	})
}

// check returns a usage error for an invalid number or series, for several machines at one placement, and for
// a container as the placement.
func (c addMachineCmd) check() error {
	if err := checkCount(c.Number, "machine"); err != nil {
		return err
	}

	if c.Series != "" {
		if err := charm.CheckSeries(c.Series); err != nil {
			return console.Usage(err)
		}
	}
	if c.Placement != "" && c.Number != 1 {
		return console.Usage(fmt.Errorf("cannot add %d machines at %q: that is a single host", c.Number, c.Placement))
	}

	if isContainer(c.Placement) {
		return console.Hint(
			console.Usage(fmt.Errorf("cannot add machine %q: only models of the provider nspawn have containers", c.Placement)),
			"to create a model of containers: juju bootstrap nspawn")
	}
	return nil
}

// withMachineHint adds hints to an error about a machine that the environment's provider cannot create. It returns
// any other error unchanged.
func withMachineHint(err error) error {
	if _, isOtherSeries := errors.AsType[*state.SeriesError](err); isOtherSeries {
		return console.Hint(err, "to add a machine of that series: juju add-machine",
			"to create a model of containers, which can have other series: juju bootstrap nspawn")
	}
	if errors.Is(err, state.ErrOtherProvider) {
		return console.Hint(
			err,
			"to create a model of hosts: juju bootstrap ssh -e NAME --state etcd://HOST:PORT/PREFIX",
		)
	}
	return err
}

// machineSpec returns the machine that the command line describes. Without --provisioner it has no jobs, and
// AddMachines gives it the default job.
func (c addMachineCmd) machineSpec() (state.Machine, error) {
	given, err := parseConstraints(c.Constraints...)
	if err != nil {
		return state.Machine{}, err
	}

	spec := state.Machine{Series: c.Series, Constraints: given, Placement: c.Placement}
	if c.Provisioner {
		spec.Jobs = []string{state.JobManage, state.JobUnits}
	}
	return spec, nil
}
