package juju

import "slices"

type runCmd struct {
	execCmd
	Params string `placeholder:"FILE" help:"YAML file with an action's parameters; those of the command line win."`
}

// Run runs an action if there is no command.
func (c runCmd) Run(o *operator) error {
	if len(o.command) > 0 || !slices.ContainsFunc(c.Units, func(w string) bool { return !isUnitWord(w) }) {
		return c.execCmd.Run(o)
	}

	if c.Format == "json" {
		c.Format = taskFormat
	}

	return runActionCmd{
		Words:  c.Units,
		Params: c.Params,
		Wait:   waitFlag{true, c.Timeout},
		Format: c.Format,
	}.Run(o)
}
