package juju

type unexposeCmd struct{ exposeCmd }

// Run marks the service as not exposed. It can be repeated.
func (c unexposeCmd) Run(o *operator) error {
	const exposed = false
	return c.setExposed(o, exposed)
}
