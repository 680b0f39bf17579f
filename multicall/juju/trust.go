package juju

import "bijou/state"

type trustCmd struct {
	Service string `arg:"" name:"application" help:"The application."`
	Remove  bool   `help:"Revoke the permission."`
	Scope   string `hidden:"" enum:",cluster" default:"" help:"No effect: an application is trusted in every cluster."`
}

// Run allows the service's units to get the cloud's credential, or revokes that permission. It can be repeated.
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
