package juju

import (
	"fmt"

	"bijou/multicall/console"
	"bijou/state"
)

type rollbackCmd struct {
	Service string `arg:"" name:"application" help:"The application."`
	DryRun  bool   `help:"Only print the changes."`
	waitFlags
}

// Run takes the service back to the charm that it ran before this one and that a unit was active with.
// Units in error go, too, and their failed hooks run again, of that charm.
func (c rollbackCmd) Run(o *operator) error {
	kept, err := readChosen(o, func(v *state.View) ([]state.KeptCharm, error) { return v.KeptCharms(c.Service) })
	if err != nil {
		return fmt.Errorf("cannot roll back application %q: %w", c.Service, err)
	}
	if len(kept) == 0 {
		return console.Hint(
			fmt.Errorf("cannot roll back application %q: none of its earlier charms is kept with which a unit was active", c.Service),
			"juju upgrade-charm "+c.Service+" --switch CHARM, or --revision N, goes over to any charm",
		)
	}

	return upgradeCharmCmd{Service: c.Service, Retry: true, DryRun: c.DryRun, waitFlags: c.waitFlags, back: &kept[0]}.Run(o)
}
