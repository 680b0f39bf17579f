package juju

type revokeSecretCmd struct{ secretGrantArgs }

// Run ends the services' grants.
func (c revokeSecretCmd) Run(o *operator) error { return c.setGranted(o, false) }
