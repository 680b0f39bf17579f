package juju

import (
	"context"
	"errors"

	"bijou/multicall/console"
	"bijou/state"
)

type destroyMachineCmd struct {
	Machines []string `arg:"" name:"machine" help:"The machines' ids."`
	Force    bool     `help:"Also remove units on it, in any state."`
	removalFlags
	promptFlags

	KeepInstance bool `hidden:"" help:"Refused: a setting says which instances stay."`
}

// Run marks the machines as dying, all or none.
func (c destroyMachineCmd) Run(o *operator) error {
	if c.KeepInstance {
		return console.Hint(console.Usage(errors.New("cannot keep the instance of one machine: the setting harvest-mode decides which instances stay")),
			"juju model-config "+state.HarvestMode+"="+string(state.HarvestNone))
	}

	return o.openChosen(func(s *state.State) error {
		k := removalKind{
			name:    "machine",
			outcome: "is removed, once its agent has ended and its instance is stopped",
			check:   (*state.Tx).DestroyMachine,
		}
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

		return c.removeAll(o, s, c.asking(o, k), c.Machines)
	})
}
