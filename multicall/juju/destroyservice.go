package juju

import (
	"context"

	"bijou/state"
)

type destroyServiceCmd struct {
	Services []string `arg:"" name:"service" help:"The services."`
	Force    bool     `help:"At once, without its units' hooks, whatever their agents do."`
	unitRemovalFlags
	waitFlags
}

// Run marks the services as dying, once it has found all of them.
func (c destroyServiceCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		exists := func(tx *state.Tx, name string) error {
			_, err := tx.Service(name)
			return err
		}
		k := removalKind{
			name:        "service",
			outcome:     "goes with its relations and units, once these have run their stop hooks",
			check:       exists,
			remove:      s.DestroyService,
			awaitsHooks: true,
		}
		if c.Force {
			k.outcome = "is gone, with its relations and units"
			k.remove = s.ForceDestroyService
			k.awaitsHooks = false
		}

		remove := k.remove
		if c.DestroyStorage {
			k.remove = func(ctx context.Context, name string) error {
				if err := s.RemoveServiceStorage(ctx, name); err != nil {
					return err
				}
				return remove(ctx, name)
			}
		}

		return c.removeUnits(o, s, k, c.Services)
	})
}
