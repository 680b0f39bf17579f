package juju

type unexposeCmd struct{ exposeCmd }

// Run takes the mark away; a service without it stays so.
func (c unexposeCmd) Run(o *operator) error { return c.setExposed(o, false, "is not") }
