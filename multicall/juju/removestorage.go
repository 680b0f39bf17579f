package juju

import "bijou/state"

type removeStorageCmd struct {
	Storage []string `arg:"" help:"Ids."`
	Force   bool     `help:"Also from a unit that has it, which is told to give it back first."`
	removalFlags
}

// Run removes the storage, all or none.
func (c removeStorageCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		remove := func(tx *state.Tx, id string) error { return tx.RemoveStorage(id, c.Force) }
		return c.removeAll(o, s, removalKind{name: "storage", outcome: "goes, with all that it holds", check: remove},
			c.Storage)
	})
}
