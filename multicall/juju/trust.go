package juju

import "bijou/state"

type trustCmd struct {
	Service string `arg:"" help:"The service."`
	Remove  bool   `help:"Let it have the credential no longer."`
	Scope   string `hidden:"" enum:",cluster" default:"" help:"Of programs that know Juju: the service is trusted, whatever its cluster."`
}

// Run lets the service's units get the cloud's credential, or no longer. It may be repeated.
func (c trustCmd) Run(o *operator) error {
	err := o.update(func(tx *state.Tx) error { return tx.SetTrusted(c.Service, !c.Remove) })
	switch {
	case err != nil:
		return err
	case c.Remove:
		o.note("%s is not trusted with the cloud's credential any longer", c.Service)
	default:
		o.note("%s is trusted with the cloud's credential", c.Service)
	}

	return nil
}
