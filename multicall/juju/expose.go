package juju

import "bijou/state"

type exposeCmd struct {
	Service string `arg:"" name:"application" help:"The application."`
}

// Run marks the service as exposed. It succeeds if the service is already exposed.
func (c exposeCmd) Run(o *operator) error {
	const exposed = true
	return c.setExposed(o, exposed)
}

// setExposed sets whether the service is exposed.
func (c exposeCmd) setExposed(o *operator, exposed bool) error {
	err := o.update(func(tx *state.Tx) error { return tx.SetExposed(c.Service, exposed) })
	if err != nil {
		return err
	}

	verb := "is not"
	if exposed {
		verb = "is"
	}
	o.note("%s %s marked as reachable from outside; bijou does not configure any firewall", c.Service, verb)
	return nil
}
