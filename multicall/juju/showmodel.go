package juju

import (
	"cmp"

	"bijou/multicall/home"
)

type showModelCmd struct {
	Name       string `arg:"" optional:"" help:"The model, if not given by -e."`
	Format     string `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"Print as yaml or json; default yaml."`
	outputFlag `embed:""`
}

// Run prints a description of the environment by this host's record of it, under the environment's name.
func (c showModelCmd) Run(o *operator) error {
	e, err := o.home.Choose(cmp.Or(home.EnvironmentName(c.Name), o.name))
	if err != nil {
		return err
	}
	return o.encode(c.Format, map[string]modelInfo{e.Name: newModelInfo(e)})
}
