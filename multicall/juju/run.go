package juju

import (
	"fmt"
	"slices"

	"bijou/multicall/console"
)

type runCmd struct {
	execCmd
	Params string `placeholder:"FILE" help:"Read an action's parameters from this YAML file; those on the command line override."`

	StringArgs bool `help:"Treat all values of an action's parameters as text."`
}

// Run runs an action if there is no command.
func (c runCmd) Run(o *operator) error {
	if len(o.command) == 0 && len(c.Units) > 1 && !isUnitWord(c.Units[0]) {
		app := quoteShellWords(c.Units[:1])
		if isUnitWord(c.Units[1]) {
			return console.Hint(console.Usage(fmt.Errorf("%q is not a unit", c.Units[0])),
				fmt.Sprintf("juju run %s %s", quoteShellWords(c.Units[1:2]), quoteShellWords(slices.Concat(c.Units[:1], c.Units[2:]))))
		}
		err := console.Usage(fmt.Errorf("%q is not a unit", c.Units[0]))
		if slices.Contains([]string{"sh", "bash", "/bin/sh", "/bin/bash"}, c.Units[1]) {
			return console.Hint(err, fmt.Sprintf("for a shell on its unit's machine: juju ssh %s/leader", app))
		}
		return console.Hint(err,
			fmt.Sprintf("juju run %s/leader %s", app, quoteShellWords(c.Units[1:])),
			fmt.Sprintf("for a command instead of an action: juju exec --application %s -- %s", app, quoteShellWords(c.Units[1:])))
	}
	isOther := func(word string) bool { return !isUnitWord(word) }
	if len(o.command) > 0 || !slices.ContainsFunc(c.Units, isOther) {
		return c.execCmd.Run(o)
	}

	if c.Format == "json" {
		c.Format = taskFormat
	}

	return runActionCmd{
		Words:      append(slices.Clone(c.Unit), c.Units...),
		Params:     c.Params,
		StringArgs: c.StringArgs,
		Wait:       waitFlag{!c.Background, c.Timeout},
		Format:     c.Format,
	}.Run(o)
}
