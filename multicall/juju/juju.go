// Package juju has the operator's commands, each in its own file. They read and
// change the state, and print. The agents act on the changes.
//
// It does not use agents or provisioners directly. To start or stop the
// background process, for example, a command calls an interface of this
// package, which package multicall implements.
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

// ErrCannotQuiesce is returned if a unit's agent has an older binary, which cannot keep hooks from beginning.
var ErrCannotQuiesce = errors.New("the unit's agent runs an older binary, which cannot hold back hooks")

// Main runs one juju command and returns its exit code.
func Main(ctx context.Context, s console.Streams, parts Parts, args []string) int {
	return console.Report(s.Err, run(ctx, s, parts, translateArgs(args)))
}

// run parses the command line and runs the command. If the command has [waitFlags] and one of them is set, run
// then waits until the affected units have settled. It returns an error with a hint for a command that bijou
// lacks, and for a model that is given as CONTROLLER:MODEL.
func run(ctx context.Context, s console.Streams, parts Parts, args []string) error {
	if err := refuseMissing(args); err != nil {
		return err
	}

	// command is the command that juju exec or juju run must run.
	args, command, err := cutCommand(args)
	if err != nil {
		return err
	}

	own := ownCommand()
	var options grammar
	own.Grammar = &options
	own.Names = func(w console.Wanted) []string { return completeNames(ctx, parts, w) } // for completions
	parsed, err := console.Parse(s, own, args)
	if err != nil {
		return err
	}

	h, err := home.Find()
	if err != nil {
		return err
	}

	name := home.EnvironmentName(cmp.Or(options.Environment, options.Model))
	// EnvironmentName has removed bijou's own controller, so a colon belongs to a different one.
	if controller, model, hasController := strings.Cut(name, ":"); hasController {
		return refuseController(controller, model, args, command)
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
		command: command,
	}

	selected := parsed.Selected().Target.Interface()
	err = o.runInto(selected, parsed.Run) // with -o, writes the output to a file
	if waiting, canWait := selected.(awaiting); canWait && err == nil {
		err = o.awaitAffected(waiting.flags())
	}
	// Errors about an unknown name get a hint with the existing names, and other errors a hint by their kind.
	return o.withHint(o.withKnownNames(err))
}

// refuseController returns an error for a model given as CONTROLLER:MODEL. The error's hint is the command
// line without the controller. args are juju's own words, and command is the command after two dashes.
func refuseController(controller, model string, args, command []string) error {
	words := slices.Clone(args)
	for i, word := range words {
		option, value, joined := strings.Cut(word, "=")
		hasModel := joined && slices.Contains(modelOptions(), option)
		switch {
		case hasModel && strings.HasPrefix(value, controller+":"):
			words[i] = option + "=" + home.EnvironmentName(model)
		case i > 0 && slices.Contains(modelOptions(), words[i-1]):
			// The option is the previous word, and this word is its value.
			words[i] = home.EnvironmentName(model)
		}
	}
	if len(command) > 0 {
		words = slices.Concat(words, []string{"--"}, command)
	}

	err := fmt.Errorf("cannot use controller %q: there are no controllers", controller)
	return console.Hint(console.Usage(err), "juju "+quoteShellWords(words))
}

// ownCommand returns a new description of juju's command line. Each parse needs a new one, since parsing
// writes into the commands.
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

// isCommand reports whether juju has a command whose name or alias is name.
func isCommand(name string) bool {
	return slices.ContainsFunc(ownCommand().List(), func(l console.Listed) bool { return l.Answers(name) })
}

// CommandLine returns the juju command line of the words, quoted for a shell. It returns "" unless the words, after
// translateArgs, begin with a command of juju.
func CommandLine(words []string) string {
	// translateArgs replaces a command of another tool if juju has a command of its own for it.
	if own := translateArgs(words); !isCommand(own[0]) {
		return ""
	}
	return "juju " + quoteShellWords(words)
}

//go:embed help
var helpFiles embed.FS

// helpInserts returns the texts that replace placeholders in the help files, by the placeholders' names.
func helpInserts() map[string]func() string {
	return map[string]func() string{
		"constraints": func() string { return constraintsHelp },
		"settings":    environmentHelp,
	}
}
