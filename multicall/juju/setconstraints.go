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

// Help shows how it is used.
func (setConstraintsCmd) Help() string {
	return `They replace all that were set before, and hold for units and machines that are added from then on. A
service's go before the environment's, one by one.

` + constraintsHelp + `
Examples:
  juju set-constraints mem=2G arch=amd64
  juju set-constraints --service wordpress mem=3G cpu-cores=2
  juju set-constraints --service wordpress`
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
