package juju

import (
	"fmt"

	"bijou/multicall/console"
	"bijou/state"
)

// placementFlags say how many new units there are to be, and where.
type placementFlags struct {
	NumUnits int    `short:"n" default:"1" placeholder:"N" help:"How many units; default 1."`
	To       string `placeholder:"MACHINE" help:"Put them on this machine, or on one of their own: \"new\"."`
}

func (p placementFlags) check() error {
	if p.NumUnits < 1 {
		return console.Usage(fmt.Errorf("cannot add %d units", p.NumUnits))
	}
	return checkCount(p.NumUnits, "unit")
}

// maxAtOnce bounds the units or machines that one command adds: a slip of the finger is
// not to fill the store.
const maxAtOnce = 10_000

func checkCount(n int, thing string) error {
	if n > maxAtOnce {
		return console.Usage(fmt.Errorf("cannot add %s at once: %d is the most", formatCount(n, thing), maxAtOnce))
	}
	return nil
}

func (p placementFlags) placement() state.Placement { return state.Placement{Machine: p.To} }

type addUnitCmd struct {
	Service string `arg:"" help:"The service."`
	placementFlags
	waitFlags
}

// Run adds the units and prints their names.
func (c addUnitCmd) Run(o *operator) error {
	if err := c.check(); err != nil {
		return err
	}
	return o.openChosen(func(s *state.State) error {
		units, err := s.AddUnits(o.ctx, c.Service, c.NumUnits, c.placement())
		for _, u := range units {
			fmt.Fprintln(o.streams.Out, u.Name)
			o.affect(untilIdle, u.Name)
		}
		return err
	})
}
