package juju

import "bijou/state"

type exposeCmd struct {
	Service string `arg:"" name:"application" help:"The application."`
}

// Run marks the service; one that is exposed already stays so.
func (c exposeCmd) Run(o *operator) error { return c.setExposed(o, true, "is") }

// setExposed sets whether the service is exposed. is completes the message: "is" or "is not".
func (c exposeCmd) setExposed(o *operator, exposed bool, is string) error {
	err := o.update(func(tx *state.Tx) error { return tx.SetExposed(c.Service, exposed) })
	if err != nil {
		return err
	}

	o.note("%s %s marked as reachable from outside; no firewall changes", c.Service, is)
	return nil
}
