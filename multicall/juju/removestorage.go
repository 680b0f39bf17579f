package juju

import (
	"errors"

	"bijou/multicall/console"
	"bijou/state"
)

type removeStorageCmd struct {
	Storage   []string `arg:"" help:"Ids of storage."`
	Force     bool     `help:"Also remove storage that a unit has, after the unit has released it."`
	NoDestroy bool     `help:"Only remove the record of detached storage. The directory stays, with its content."`
	removalFlags
}

// Run makes the agents of machines remove all of the storage, or none. If a storage has no unit, and its directory was
// never created, Run itself removes its record. With --no-destroy it removes only the records.
func (c removeStorageCmd) Run(o *operator) error {
	if c.NoDestroy && c.Force {
		return console.Hint(console.Usage(errors.New("--no-destroy and --force cannot be used together")),
			"to detach storage from its unit first: juju detach-storage ID")
	}

	return o.openChosen(func(s *state.State) error {
		// Both kinds have no remove, so check itself does the work, all in one transaction.
		if c.NoDestroy {
			k := removalKind{
				name:    "storage",
				outcome: "is no longer in the model; its directory stays, with its content",
				check:   (*state.Tx).ForgetStorage,
			}
			return c.removeAll(o, s, k, c.Storage)
		}

		remove := func(tx *state.Tx, id string) error { return tx.RemoveStorage(id, c.Force) }
		return c.removeAll(o, s, removalKind{name: "storage", outcome: "is removed, with its content", check: remove},
			c.Storage)
	})
}
