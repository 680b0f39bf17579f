package juju

import (
	"errors"
	"os"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/secret/keyfile"
)

type doCmd struct {
	Unit        string   `placeholder:"UNIT" help:"Act as UNIT; without this option, name a unit as the last argument of each hook tool."`
	RelationID  string   `name:"relation-id" placeholder:"ID" help:"Act as a hook of relation ID."`
	HookDialect string   `placeholder:"DIALECT" help:"Use this dialect for the tools, classic or modern; default: the dialect of the unit's charm, or classic without a unit."`
	State       string   `placeholder:"URL" help:"Use the model's state at this URL, if this host has no directory of the model; default: $$JUJU_STATE."`
	Command     []string `arg:"" passthrough:"partial" help:"The command with its arguments; or one unit, to open a shell as that unit."`
}

// HookCommand is a command to run as a hook.
type HookCommand struct {
	Unit, Relation string // empty if there is none
	Dialect        string // empty for the dialect of the unit's charm
	Command        []string
	Streams        console.Streams
	Environ        []string               // in addition to this process's environment
	MachineDir     func(id string) string // returns a machine's directory on this host
	SecretKeys     keyfile.File
}

// HookOutcome is the outcome of a [HookCommand].
type HookOutcome struct {
	Exit    int // the command's exit code
	Changed int // how many settings and ports the command has changed
}

// Run runs the command as if it were a hook. The exit code of juju is the command's.
func (c doCmd) Run(o *operator) error {
	if _, err := charm.ParseDialect(c.HookDialect); err != nil {
		return console.Usage(err)
	}

	words := trimDashes(c.Command)
	if len(words) == 0 {
		return console.Hint(console.Usage(errors.New("no command given")), "see: juju do --help")
	}

	command := HookCommand{
		Unit:     c.Unit,
		Relation: c.RelationID,
		Dialect:  c.HookDialect,
		Command:  words,
		Streams:  o.streams,
	}
	if url := c.stateURL(o); url != "" {
		// Only the URL of the environment's store is known, not a directory with machines and secret keys.
		command.Environ = []string{"JUJU_STATE=" + url}
		return c.runAsHook(o, home.Environment{Record: home.Record{State: url}}, command)
	}

	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}

	command.Environ = []string{"JUJU_ENV=" + e.Name, "BIJOU_HOME=" + o.home.Dir}
	command.MachineDir = e.MachineDir
	command.SecretKeys = e.SecretKeys()
	return c.runAsHook(o, e, command)
}

// trimDashes drops the "--" that ends juju's own flags.
func trimDashes(words []string) []string {
	if len(words) > 0 && words[0] == "--" {
		return words[1:]
	}
	return words
}

// stateURL returns the URL that --state gives or, without --state and -e, the URL in JUJU_STATE. It returns "" if
// the environment's name determines the URL. -e takes precedence over the JUJU_STATE of an outer juju do.
func (c doCmd) stateURL(o *operator) string {
	if c.State == "" && o.name == "" {
		return os.Getenv("JUJU_STATE")
	}
	return c.State
}

// runAsHook runs the command with the hook tools. If the command has changed anything and the environment's
// background process does not run, it prints a warning. The error that it returns makes juju exit with the
// command's exit code. e has no directory if only its store is known.
func (c doCmd) runAsHook(o *operator, e home.Environment, command HookCommand) error {
	return o.openState(e, func(s *state.State) error {
		outcome, err := o.parts.Hooks.Run(o.ctx, s, command)
		if outcome.Changed > 0 && e.Dir != "" {
			// The changes have no effect until the agents act on them.
			o.warnIfDown(e)
		}
		return console.Exit(outcome.Exit, err)
	})
}
