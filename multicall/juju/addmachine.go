package juju

import (
	"fmt"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
)

// addMachineCmd is `juju add-machine`.
type addMachineCmd struct {
	Number int    `short:"n" default:"1" placeholder:"N" help:"How many machines; default 1."`
	Series string `placeholder:"SERIES" help:"Their series; default: the environment's."`

	Provisioner bool `help:"Their agents host a provisioner, too: one takes over when the leader's host dies."`
}

// Help shows how it is used.
func (addMachineCmd) Help() string {
	return `The provisioner starts them; "juju deploy --to ID" and "juju add-unit --to ID" put units there.

Examples:
  juju add-machine
  juju add-machine -n 3 --series noble
  juju add-machine --provisioner`
}

// Run adds the machines and prints their ids.
func (c addMachineCmd) Run(o *operator) error {
	if c.Number < 1 {
		return console.Usage(fmt.Errorf("cannot add %d machines", c.Number))
	}
	if err := checkNumber(c.Number, "machine"); err != nil {
		return err
	}
	if c.Series != "" {
		if err := charm.CheckSeries(c.Series); err != nil {
			return console.Usage(err)
		}
	}
	return o.open(func(s *state.State) error {
		machines, err := s.AddMachines(o.ctx, c.Number, state.MachineSpec{Series: c.Series, Jobs: c.jobs()})
		for _, m := range machines {
			fmt.Fprintln(o.streams.Out, m.ID)
		}
		return err
	})
}

// jobs is what the machines are for.
func (c addMachineCmd) jobs() []string {
	if c.Provisioner {
		return []string{state.JobManage, state.JobUnits}
	}
	return []string{state.JobUnits}
}
