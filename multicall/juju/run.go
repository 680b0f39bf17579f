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

// Run runs an action of a charm. With a command after two dashes, it runs that command as juju exec does.
// o.command has the words after the two dashes.
func (c runCmd) Run(o *operator) error {
	// Without a command or --unit, the units must precede the action.
	isMisplaced := len(c.Unit) == 0 && len(c.Units) > 1 && !isUnitWord(c.Units[0])
	if len(o.command) == 0 && isMisplaced {
		return refuseNonUnit(c.Units[0], c.Units[1:])
	}

	isActionWord := func(word string) bool { return !isUnitWord(word) }
	// If there is neither a command nor an action, execCmd.Run returns the error.
	if len(o.command) > 0 || !slices.ContainsFunc(c.Units, isActionWord) {
		return c.execCmd.Run(o)
	}

	if c.Format == "json" {
		// juju run prints the keys of Juju 3, and juju run-action prints other keys.
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

// refuseNonUnit returns the error for a word that is not a unit, with the commands that the operator may have
// meant. rest are the words after that word, at least one.
func refuseNonUnit(word string, rest []string) error {
	app := quoteShellWords([]string{word})
	err := console.Usage(fmt.Errorf("%q is not a unit", word))

	// In "juju run restart blog/0", the words are in the wrong order.
	if isUnitWord(rest[0]) {
		words := slices.Concat([]string{word}, rest[1:])
		return console.Hint(err, fmt.Sprintf("juju run %s %s", quoteShellWords(rest[:1]), quoteShellWords(words)))
	}
	if slices.Contains([]string{"sh", "bash", "/bin/sh", "/bin/bash"}, rest[0]) {
		return console.Hint(err, fmt.Sprintf("for a shell on its unit's machine: juju ssh %s/leader", app))
	}

	return console.Hint(err,
		fmt.Sprintf("juju run %s/leader %s", app, quoteShellWords(rest)),
		fmt.Sprintf("for a command instead of an action: juju exec --application %s -- %s", app, quoteShellWords(rest)))
}
