package juju

import (
	"fmt"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/constraints"
)

type getConstraintsCmd struct {
	Service string `arg:"" optional:"" help:"Of this service, instead of the environment."`
	Format  string `enum:"text,yaml,json" default:"text" placeholder:"FORMAT" help:"text, yaml or json; default text."`
}

// Run prints the constraints; as text, nothing if there are none.
func (c getConstraintsCmd) Run(o *operator) error {
	set, err := readChosen(o, func(v *state.View) (constraints.Value, error) {
		if c.Service != "" {
			s, err := v.Service(c.Service)
			return s.Constraints, err
		}
		e, err := v.Environment()
		return e.Constraints, err
	})
	switch {
	case err != nil:
		return err
	case c.Format == "json" && slices.Contains(o.args, "model-constraints"):
		return o.encode("json", struct { // Juju 3's name of cpu-cores
			constraints.Value
			CPUCores *uint64 `json:"cpu-cores,omitempty"`
			Cores    *uint64 `json:"cores,omitempty"`
		}{set, nil, set.CPUCores})
	case c.Format != "text":
		return o.encode(c.Format, set)
	case set != constraints.Value{}:
		_, err = fmt.Fprintln(o.streams.Out, set)
	}
	return err
}

const constraintsHelp = `Constraints: mem and root-disk (a number with M, G, T or P; 1.5G), cpu-cores (or cores), cpu-power (100 is one
EC2 unit), arch, container, tags (a,b,^c: with a and b, not c), or an instance-type instead of sizes.
An empty value is explicitly none, whatever the environment says.
`

func parseConstraints(words ...string) (constraints.Value, error) {
	v, err := constraints.Parse(strings.Join(words, " "))
	if err != nil {
		return constraints.Value{}, console.Usage(err)
	}
	return v, nil
}

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
	return o.update(func(tx *state.Tx) error {
		if c.Service == "" {
			return tx.SetConstraints(v)
		}
		return tx.SetServiceConstraints(c.Service, v)
	})
}
