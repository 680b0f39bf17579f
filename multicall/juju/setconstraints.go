package juju

import (
	"cmp"

	"bijou/state"
)

type setConstraintsCmd struct {
	Values  []string `arg:"" optional:"" name:"key=value" help:"All constraints there are to be; none: no constraints."`
	Service string   `placeholder:"SERVICE" help:"Of this service, instead of the environment."`
}

// Run replaces the constraints.
func (c setConstraintsCmd) Run(o *operator) error {
	v, err := parseConstraints(c.Values...)
	if err != nil {
		return err
	}

	err = o.update(func(tx *state.Tx) error {
		if c.Service == "" {
			return tx.SetConstraints(v)
		}
		return tx.SetServiceConstraints(c.Service, v)
	})
	if err != nil {
		return err
	}

	of := cmp.Or(c.Service, "the environment")
	shown := v.String()
	if shown == "" {
		shown = "none"
	}
	o.note("constraints of %s are %s; they are for machines to come", of, shown)
	return nil
}
