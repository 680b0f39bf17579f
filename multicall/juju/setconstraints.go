package juju

import (
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/constraints"
)

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
