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
	return console.Report(s.Err, run(ctx, s, parts, inOwnWords(args)))
}

// run parses the command line, runs the command, and waits for its effects if the flags ask for that.
func run(ctx context.Context, s console.Streams, parts Parts, args []string) error {
	if err := refuseMissing(args); err != nil {
		return err
	}

	args, tail, err := cutCommand(args)
	if err != nil {
		return err
	}

	c := ownCommand()
	var g grammar
	c.Grammar = &g
	c.Names = func(w console.Wanted) []string { return completeNames(ctx, parts, w) }
	parsed, err := console.Parse(s, c, args)
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

	err = o.runInto(parsed.Selected().Target.Interface(), parsed.Run)
	if c, may := parsed.Selected().Target.Interface().(awaiting); may && err == nil {
		err = o.awaitAffected(c.flags())
	}
	return o.withHint(o.listKnown(err))
}

// ownCommand returns juju's command line, into whose commands one parse writes.
func ownCommand() console.Command {
	return console.Command{
		Name:     "juju",
		Grammar:  &grammar{},
		Commands: &commands{},
		Help:     helpFiles,
		Inserts:  helpInserts(),
		Unneeded: unneeded(),
	}
}

// isCommand reports whether juju has a command with that name or alias.
func isCommand(name string) bool {
	return slices.ContainsFunc(ownCommand().List(), func(l console.Listed) bool { return l.Answers(name) })
}

// cutCommand cuts the command of `juju exec` and `juju run` off the arguments, so that none of its words
// counts as an option of juju. The command begins after two dashes. For exec without dashes it begins with
// the first word that is not a unit.
func cutCommand(args []string) (own, command []string, err error) {
	at := commandAt(args)
	if at == len(args) || args[0] == console.CompleteOption || args[at] != "run" && args[at] != "exec" {
		return args, nil, nil
	}

	if args[at] == "exec" {
		if own, command, err = cutBareCommand(args, at); len(command) > 0 || err != nil {
			return own, command, err
		}
	}
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i], args[i+1:], nil
	}

	return args, nil, nil
}

// cutBareCommand is cutCommand for a command without dashes; there is none if it finds only units.
func cutBareCommand(args []string, at int) (own, command []string, err error) {
	words, err := ownCommand().Words(args[at:])
	if len(words) > 0 && !slices.ContainsFunc(args[at:], namesUnits) {
		words = words[1:] // a unit stands there, whatever the word is
	}

	for _, i := range words {
		if !isUnitWord(args[at+i]) {
			return args[:at+i], args[at+i:], err
		}
	}

	return args, nil, err
}

// namesUnits reports whether the word is an option of juju exec's that says where a command runs.
func namesUnits(word string) bool {
	option, _, _ := strings.Cut(word, "=")
	return slices.Contains([]string{
		"-u", "--unit", "-a", "--app", "--application", "--service", "--all", "--machine",
	}, option)
}

//go:embed help
var helpFiles embed.FS

func helpInserts() map[string]func() string {
	return map[string]func() string{
		"constraints": func() string { return constraintsHelp },
		"settings":    environmentHelp,
	}
}
