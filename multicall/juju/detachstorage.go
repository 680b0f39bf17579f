package juju

import "bijou/state"

type detachStorageCmd struct {
	Storage []string `arg:"" help:"Ids of storage; the content stays on the machine."`
	waitFlags
}

// Run detaches all of the storage, or none.
func (c detachStorageCmd) Run(o *operator) error {
	return o.changeStorage(c.Storage, "detaching %s", (*state.Tx).DetachStorage)
}
