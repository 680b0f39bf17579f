package juju

import "bijou/state"

type trustCmd struct {
	Service string `arg:"" help:"The service."`
	Remove  bool   `help:"Let it have the credential no longer."`
}

// Help shows how it is used.
func (trustCmd) Help() string {
	return `Its units run config-changed; from then on credential-get prints what juju set-credential was given, until --remove.

Examples:
  juju trust integrator
  juju trust integrator --remove`
}

// Run trusts the service, or no longer does; one that it is so of already stays so.
func (c trustCmd) Run(o *operator) error {
	return o.update(func(tx *state.Tx) error { return tx.SetTrusted(c.Service, !c.Remove) })
}
