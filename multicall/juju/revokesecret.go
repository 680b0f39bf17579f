package juju

type revokeSecretCmd struct{ secretGrantArgs }

// Run ends the services' grants.
func (c revokeSecretCmd) Run(o *operator) error {
	const may = false
	return c.setGranted(o, may)
}
