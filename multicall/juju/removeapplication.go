package juju

import (
	"context"

	"bijou/state"
)

type removeApplicationCmd struct {
	Services []string `arg:"" name:"application" help:"The applications."`
	Force    bool     `help:"Remove the applications at once, without hooks of their units."`
	unitRemovalFlags
	waitFlags
}

// Run marks the services as dying, one after another, once it has found all of them. With --force it removes
// them at once. With --destroy-storage it first marks the storage of their units for removal.
func (c removeApplicationCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		checkExists := func(tx *state.Tx, name string) error {
			_, err := tx.Service(name)
			return err
		}
		k := removalKind{
			name:        "application",
			key:         "services",
			outcome:     "is removed with its relations and units, once the units have run their stop hooks",
			check:       checkExists,
			remove:      s.DestroyService,
			awaitsHooks: true,
		}
		if c.Force {
			k.outcome = "is gone, with its relations and units"
			k.remove = s.ForceDestroyService
			k.awaitsHooks = false
		}

		removeService := k.remove
		if c.DestroyStorage {
			k.remove = func(ctx context.Context, name string) error {
				if err := s.RemoveServiceStorage(ctx, name); err != nil {
					return err
				}
				return removeService(ctx, name)
			}
		}

		return c.removeUnits(o, s, k, c.Services)
	})
}
