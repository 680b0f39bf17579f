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
	"fmt"
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

	name := home.EnvironmentName(cmp.Or(g.Environment, g.Model))
	if controller, model, ok := strings.Cut(name, ":"); ok {
		return refuseController(controller, model, args, tail)
	}

	bar := console.NewProgress(s.Err, time.Now)
	defer bar.End()

	o := &operator{
		ctx:     ctx,
		streams: s,
		bar:     bar,
		home:    h,
		name:    name,
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

// refuseController shows the command line without the controller of [CONTROLLER:]MODEL.
func refuseController(controller, model string, args, command []string) error {
	words := slices.Clone(args)
	for i, word := range words {
		option, value, joined := strings.Cut(word, "=")
		switch {
		case joined && slices.Contains(modelOptions(), option) && strings.HasPrefix(value, controller+":"):
			words[i] = option + "=" + home.EnvironmentName(model)
		case i > 0 && slices.Contains(modelOptions(), words[i-1]):
			words[i] = home.EnvironmentName(model)
		}
	}
	if len(command) > 0 {
		words = slices.Concat(words, []string{"--"}, command)
	}

	err := fmt.Errorf("cannot use controller %q: there are no controllers", controller)
	return console.Hint(console.Usage(err), "juju "+quoteShellWords(words))
}

// ownCommand returns juju's command line. It is for one parse, which writes into its commands.
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

// CommandLine returns the command line of juju with these words, quoted for a shell; "" if the first is no
// command of juju's.
func CommandLine(words []string) string {
	if own := inOwnWords(words); !isCommand(own[0]) {
		return ""
	}
	return "juju " + quoteShellWords(words)
}

//go:embed help
var helpFiles embed.FS

func helpInserts() map[string]func() string {
	return map[string]func() string{
		"constraints": func() string { return constraintsHelp },
		"settings":    environmentHelp,
	}
}
