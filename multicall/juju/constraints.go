package juju

import (
	"fmt"
	"slices"

	"bijou/state"
	"bijou/state/constraints"
)

type constraintsCmd struct {
	Service    string `arg:"" name:"application" optional:"" help:"The application; default: the model itself."`
	Format     string `enum:"text,yaml,json" default:"text" placeholder:"FORMAT" help:"Print as text, yaml or json; default text."`
	outputFlag `embed:""`
}

// Run prints the constraints of the service or, without one, of the environment. In the text format it prints
// nothing if there are none.
func (c constraintsCmd) Run(o *operator) error {
	value, err := readChosen(o, func(v *state.View) (constraints.Value, error) {
		if c.Service != "" {
			s, err := v.Service(c.Service)
			return s.Constraints, err
		}
		e, err := v.Environment()
		return e.Constraints, err
	})
	if err != nil {
		return err
	}

	if c.Format == "json" && slices.Contains(o.args, "model-constraints") {
		// Juju 3 prints cpu-cores as cores. The outer CPUCores stays nil, and hides the field of Value.
		return o.encode("json", struct {
			constraints.Value
			CPUCores *uint64 `json:"cpu-cores,omitempty"`
			Cores    *uint64 `json:"cores,omitempty"`
		}{Value: value, Cores: value.CPUCores})
	}
	if c.Format != "text" {
		return o.encode(c.Format, value)
	}

	if value == (constraints.Value{}) {
		return nil
	}
	_, err = fmt.Fprintln(o.streams.Out, value)
	return err
}
