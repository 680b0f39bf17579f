// Package juju has the operator's commands, one file a command. They read and
// change state, and print; the agents do what follows.
//
// It knows no agent and no provisioner: what a command needs of them (to start
// the background process, to stop it) it asks interfaces of its own, which
// multicall implements; that and multicall/providers alone import it.
package juju

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
)

// Quiesced keeps hooks of a unit from beginning until it is closed, or this process ends.
type Quiesced interface {
	// Holds reports whether no hook can have begun so far.
	Holds() bool
	// Close lets hooks run again.
	Close() error
}

// ErrCannotQuiesce says that a unit's agent is of an older binary, which cannot be asked to run no
// hook.
var ErrCannotQuiesce = errors.New("its agent is of an older binary, which cannot keep hooks from beginning")

// Main runs one juju command and returns its exit code.
func Main(ctx context.Context, s console.Streams, parts Parts, args []string) int {
	return console.Report(s.Err, run(ctx, s, parts, console.OrHelp(args)))
}

func run(ctx context.Context, s console.Streams, parts Parts, args []string) error {
	if err := refuseMissing(args); err != nil {
		return err
	}

	args, tail := cutCommand(args)
	var g grammar
	names := func(w console.Wanted) []string { return completeNames(ctx, parts, w) }
	parsed, err := console.Parse(
		s,
		console.Command{
			Name:     "juju",
			Grammar:  &g,
			Commands: &commands{},
			Help:     helpFiles,
			Inserts:  helpInserts(),
			Names:    names,
		},
		args,
	)
	if err != nil {
		return err
	}

	h, err := home.Find()
	if err != nil {
		return err
	}

	bar := console.NewProgress(s.Err, time.Now)
	defer bar.End()

	o := &operator{
		ctx:     ctx,
		streams: s,
		bar:     bar,
		home:    h,
		name:    environmentName(cmp.Or(g.Environment, g.Model)),
		parts:   parts,
		args:    args,
		command: tail,
	}

	err = parsed.Run(o)
	if c, may := parsed.Selected().Target.Interface().(awaiting); may && err == nil {
		err = o.awaitAffected(c.flags())
	}
	return o.withHint(o.listKnown(err))
}

// cutCommand takes the command of `juju run ... -- COMMAND` off the arguments, so that no
// word of it is taken for a flag of juju's.
func cutCommand(args []string) (own, command []string) {
	i := slices.Index(args, "--")
	if i < 0 || args[0] == console.CompleteOption {
		return args, nil
	}

	words := args[:i]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		n := 1
		if slices.Contains([]string{"-e", "--environment", "-m", "--model"}, words[0]) {
			n = min(2, len(words))
		}
		words = words[n:]
	}

	if len(words) == 0 || words[0] != "run" && words[0] != "exec" {
		return args, nil
	}

	return args[:i], args[i+1:]
}

//go:embed help
var helpFiles embed.FS

func helpInserts() map[string]func() string {
	return map[string]func() string{
		"constraints": func() string { return constraintsHelp },
		"settings":    environmentHelp,
	}
}
