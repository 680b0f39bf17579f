package juju

import "fmt"

type environmentsCmd struct {
	Format string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"tabular, yaml or json; default tabular."`
}

// Run prints the names, the one in use marked by a star.
func (c environmentsCmd) Run(o *operator) error {
	names, err := o.home.Names()
	if err != nil {
		return err
	}

	current, infos := o.home.Current(), []modelInfo{}
	for _, name := range names {
		mark := map[bool]string{true: "*", false: " "}[name == current]
		if c.Format == "tabular" {
			fmt.Fprintf(o.streams.Out, "%s %s\n", mark, name)
			continue
		}

		e, err := o.home.Environment(name)
		if err != nil {
			return err
		}
		infos = append(infos, newModelInfo(e))
	}

	if c.Format != "tabular" {
		err = o.encode(c.Format, map[string]any{"models": infos, "current-model": current})
	}
	return err
}
