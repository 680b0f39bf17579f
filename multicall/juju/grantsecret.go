package juju

type grantSecretCmd struct{ secretGrantArgs }

// Run lets the services read the secret.
func (c grantSecretCmd) Run(o *operator) error {
	const may = true
	return c.setGranted(o, may)
}
