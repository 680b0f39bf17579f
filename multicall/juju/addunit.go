package juju

import (
	"fmt"

	"bijou/state"
)

type addUnitCmd struct {
	Service string `arg:"" name:"application" help:"The application."`
	placementFlags
	waitFlags
}

// Run adds the units and prints their names. For --wait, it records the units.
func (c addUnitCmd) Run(o *operator) error {
	if err := c.check(); err != nil {
		return err
	}
	c.noteTogether(o) // prints a note if all units go to one machine

	return o.openChosen(func(s *state.State) error {
		// Even with an error, AddUnits returns the units that it has added.
		units, err := s.AddUnits(o.ctx, c.Service, c.NumUnits, c.placements()...)
		for _, u := range units {
			fmt.Fprintln(o.streams.Out, u.Name)
			o.noteAffected(untilIdle, u.Name)
		}
		return err
	})
}
