package juju

import "bijou/state"

type attachStorageCmd struct {
	Unit    string   `arg:"" help:"The unit."`
	Storage []string `arg:"" help:"Ids of detached storage on the unit's machine."`
	waitFlags
}

// Run attaches all of the storage, or none.
func (c attachStorageCmd) Run(o *operator) error {
	attach := func(tx *state.Tx, id string) error { return tx.AttachStorage(c.Unit, id) }
	return o.changeStorage(c.Storage, "attaching %s to "+c.Unit, attach)
}
