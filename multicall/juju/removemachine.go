package juju

import (
	"context"
	"errors"

	"bijou/multicall/console"
	"bijou/state"
)

type removeMachineCmd struct {
	Machines []string `arg:"" name:"machine" help:"The machines' ids."`
	Force    bool     `help:"Also remove units on it, in any state."`
	removalFlags
	promptFlags

	KeepInstance bool `hidden:"" help:"Refused: a setting decides which instances stay."`
}

// Run marks all machines as dying, or none. It removes a machine without an instance at once. With --force it first
// checks that all machines exist, and then destroys one after another, with its units, without waiting for agents.
func (c removeMachineCmd) Run(o *operator) error {
	if c.KeepInstance {
		return console.Hint(console.Usage(errors.New("cannot keep the instance of a single machine: the setting provisioner-harvest-mode decides which instances stay")),
			"juju model-config "+state.HarvestMode+"="+string(state.HarvestNone))
	}

	return o.openChosen(func(s *state.State) error {
		// Without --force, the kind has no remove, and check itself makes the machines dying, all in one transaction.
		k := removalKind{
			name:    "machine",
			outcome: "is removed, once its agent has ended and its instance is stopped",
			check:   (*state.Tx).DestroyMachine,
		}
		if c.Force {
			k.check = func(tx *state.Tx, id string) error {
				if id == "0" {
					// This returns the reason why machine 0 cannot be removed.
					return tx.DestroyMachine(id)
				}
				_, err := tx.Machine(id)
				return err
			}
			const force = true
			k.remove = func(ctx context.Context, id string) error { return s.DestroyMachine(ctx, id, force) }
		}

		return c.removeAll(o, s, c.asking(o, k), c.Machines)
	})
}
