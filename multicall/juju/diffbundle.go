package juju

import (
	"fmt"

	"bijou/multicall/console"
	"bijou/multicall/juju/bundle"
	"bijou/state"
)

type diffBundleCmd struct {
	Bundle     string   `arg:"" help:"The bundle's file, or a folder with bundle.yaml."`
	Overlay    []string `sep:"none" type:"existingfile" placeholder:"FILE" help:"A file that is laid over it; may be repeated."`
	Repository string   `env:"JUJU_REPOSITORY" placeholder:"DIR" help:"A folder of charms (SERIES/NAME or NAME)."`
	Format     string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"yaml or json; default yaml."`
}

// Run prints the differences.
func (c diffBundleCmd) Run(o *operator) error {
	path, isBundle := findBundle(c.Bundle)
	if !isBundle {
		return console.Usage(fmt.Errorf("%q is no bundle: that is a file *.yaml, or a folder with bundle.yaml",
			c.Bundle))
	}

	// Nothing is done.
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
