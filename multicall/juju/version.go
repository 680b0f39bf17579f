package juju

import (
	"fmt"
	"runtime"

	"bijou/state/charm"
)

type versionCmd struct {
	All        bool   `help:"Also print bijou's version."`
	Format     string `enum:"plain,yaml,json" default:"plain" placeholder:"FORMAT" help:"Print as plain, yaml or json; default plain."`
	outputFlag `embed:""`
}

// Run prints the version in the form of Juju's own version, with bijou as the release. With --all, or with a format
// other than plain, it also prints bijou's own version.
func (c versionCmd) Run(o *operator) error {
	version := charm.JujuVersion + "-bijou-" + runtime.GOARCH
	if c.Format == "plain" && !c.All {
		_, err := fmt.Fprintln(o.streams.Out, version)
		return err
	}
	// With --all, the format plain is the same as yaml.
	return o.encode(c.Format, map[string]string{"version": version, "bijou-version": o.parts.Version})
}
