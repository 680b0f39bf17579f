package juju

import (
	"fmt"

	"bijou/multicall/console"
	"bijou/multicall/juju/bundle"
	"bijou/state"
)

type diffBundleCmd struct {
	Bundle     string   `arg:"" help:"The bundle's file, or a directory with bundle.yaml."`
	Overlay    []string `sep:"none" type:"existingfile" placeholder:"FILE" help:"Apply the overlay FILE to the bundle. Can be repeated."`
	Repository string   `env:"JUJU_REPOSITORY" placeholder:"DIR" help:"Take charms from this directory (SERIES/NAME or NAME)."`
	Format     string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"Print as yaml or json; default yaml."`
}

// Run prints the differences between the bundle and the environment.
func (c diffBundleCmd) Run(o *operator) error {
	path, isBundle := findBundle(c.Bundle)
	if !isBundle {
		return console.Usage(fmt.Errorf("%q is not a bundle: want a .yaml or .yml file, or a directory with bundle.yaml",
			c.Bundle))
	}

	// This command deploys nothing, so skip the checks of a deployment.
	cmd := deployCmd{
		Overlay:      c.Overlay,
		Repository:   c.Repository,
		Force:        true,
		ForceSeries:  true,
		AllowOutside: true,
	}

	return cmd.openBundle(o, path, func(_ *state.State, b *bundle.Comparison) error {
		return o.encode(c.Format, b.Diff())
	})
}
