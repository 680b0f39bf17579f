package juju

type unexposeCmd struct{ exposeCmd }

// Run marks the service as not exposed. It may be repeated.
func (c unexposeCmd) Run(o *operator) error { return c.setExposed(o, false, "is not") }
