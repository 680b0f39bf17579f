package juju

import (
	"errors"

	"bijou/multicall/console"
	"bijou/state"
)

type removeStorageCmd struct {
	Storage   []string `arg:"" help:"Ids."`
	Force     bool     `help:"Also from a unit that has it, which is told to give it back first."`
	NoDestroy bool     `help:"Only forget storage that no unit has: its folder stays with all that it holds."`
	removalFlags
}

// Run removes the storage, all or none.
func (c removeStorageCmd) Run(o *operator) error {
	if c.NoDestroy && c.Force {
		return console.Hint(console.Usage(errors.New("--no-destroy and --force cannot be used together")),
			"juju detach-storage ID takes it from its unit first")
	}

	return o.openChosen(func(s *state.State) error {
		if c.NoDestroy {
			k := removalKind{
				name:    "storage",
				outcome: "is forgotten; its folder stays with all that it holds",
				check:   (*state.Tx).ForgetStorage,
			}
			return c.removeAll(o, s, k, c.Storage)
		}

		remove := func(tx *state.Tx, id string) error { return tx.RemoveStorage(id, c.Force) }
		return c.removeAll(o, s, removalKind{name: "storage", outcome: "goes, with all that it holds", check: remove},
			c.Storage)
	})
}
