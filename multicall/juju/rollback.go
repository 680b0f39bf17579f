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

// Run returns the service to the last earlier charm with which a unit was active. Units in error also return
// to it, and run their failed hooks again.
func (c rollbackCmd) Run(o *operator) error {
	kept, err := readChosen(o, func(v *state.View) ([]state.KeptCharm, error) { return v.KeptCharms(c.Service) })
	if err != nil {
		return fmt.Errorf("cannot roll back application %q: %w", c.Service, err)
	}
	if len(kept) == 0 {
		return console.Hint(
			fmt.Errorf("cannot roll back application %q: the model has no earlier charm with which a unit was active", c.Service),
			"juju refresh "+c.Service+" --switch CHARM, or --revision N, switches to any charm",
		)
	}

	// KeptCharms lists the latest charm first.
	return refreshCmd{Service: c.Service, Retry: true, DryRun: c.DryRun, waitFlags: c.waitFlags, back: &kept[0]}.Run(o)
}
