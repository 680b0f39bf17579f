package juju

import (
	"errors"

	"bijou/multicall/console"
	"bijou/state"
)

type removeStorageCmd struct {
	Storage   []string `arg:"" help:"Ids."`
	Force     bool     `help:"Also remove storage that a unit has, after its unit has given it back."`
	NoDestroy bool     `help:"Only forget detached storage: its directory stays with its content."`
	removalFlags
}

// Run removes the storage, all or none.
func (c removeStorageCmd) Run(o *operator) error {
	if c.NoDestroy && c.Force {
		return console.Hint(console.Usage(errors.New("--no-destroy and --force cannot be used together")),
			"to detach it from its unit first: juju detach-storage ID")
	}

	return o.openChosen(func(s *state.State) error {
		if c.NoDestroy {
			k := removalKind{
				name:    "storage",
				outcome: "is forgotten; its directory stays with its content",
				check:   (*state.Tx).ForgetStorage,
			}
			return c.removeAll(o, s, k, c.Storage)
		}

		remove := func(tx *state.Tx, id string) error { return tx.RemoveStorage(id, c.Force) }
		return c.removeAll(o, s, removalKind{name: "storage", outcome: "is removed, with its content", check: remove},
			c.Storage)
	})
}
