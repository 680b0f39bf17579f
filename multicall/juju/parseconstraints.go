package juju

import (
	"strings"

	"bijou/multicall/console"
	"bijou/state/constraints"
)

const constraintsHelp = `Constraints: mem and root-disk (a number with M, G, T or P; 1.5G), cpu-cores (or cores), cpu-power (100 is one
EC2 unit), arch, container, tags (a,b,^c: with a and b, not c), or an instance-type instead of sizes.
An empty value means no constraint, even if the model has one.
`

// parseConstraints parses words such as mem=2G. It returns a usage error if they are not constraints.
func parseConstraints(words ...string) (constraints.Value, error) {
	v, err := constraints.Parse(strings.Join(words, " "))
	if err != nil {
		return constraints.Value{}, console.Usage(err)
	}
	return v, nil
}
