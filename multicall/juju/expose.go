package juju

import "bijou/state"

type exposeCmd struct {
	Service string `arg:"" help:"The service."`
}

// Run marks the service; one that is exposed already stays so.
func (c exposeCmd) Run(o *operator) error {
	return setExposed(o, c.Service, true, "is marked as to be reached from outside; no firewall is changed by that")
}

func setExposed(o *operator, service string, exposed bool, follow string) error {
	err := o.update(func(tx *state.Tx) error { return tx.SetExposed(service, exposed) })
	if err == nil {
		o.note("%s %s", service, follow)
	}
	return err
}

type unexposeCmd struct {
	Service string `arg:"" help:"The service."`
}

// Run takes the mark away; a service without it stays so.
func (c unexposeCmd) Run(o *operator) error {
	return setExposed(o, c.Service, false, "is not marked as to be reached from outside; no firewall is changed by that")
}
