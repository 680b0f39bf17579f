package juju

import "bijou/state"

type trustCmd struct {
	Service string `arg:"" name:"application" help:"The application."`
	Remove  bool   `help:"Revoke the permission."`
	Scope   string `hidden:"" enum:",cluster" default:"" help:"Of programs that know Juju: the application is trusted, whatever its cluster."`
}

// Run lets the service's units get the cloud's credential, or no longer. It may be repeated.
func (c trustCmd) Run(o *operator) error {
	err := o.update(func(tx *state.Tx) error { return tx.SetTrusted(c.Service, !c.Remove) })
	switch {
	case err != nil:
		return err
	case c.Remove:
		o.note("%s is no longer trusted with the cloud's credential", c.Service)
	default:
		o.note("%s is trusted with the cloud's credential", c.Service)
	}

	return nil
}
