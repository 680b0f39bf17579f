// Package neco has the commands of `neco`, each in its own file. They read and change
// the updater's keys, and print. The daemons act on the changes.
//
// Decisions about updates are in package updater/decide.
package neco

import (
	"context"
	"embed"
	"strings"

	"bijou/multicall/console"
	"bijou/updater/record"
)

//go:embed help
var helpFiles embed.FS

// Main runs one neco command and returns its exit code.
func Main(ctx context.Context, s console.Streams, parts Parts, args []string) int {
	return console.Report(s.Err, run(ctx, s, parts, console.OrHelp(args)))
}

// run parses the command line and runs the command.
func run(ctx context.Context, s console.Streams, parts Parts, args []string) error {
	var g grammar
	parsed, err := console.Parse(
		s,
		console.Command{
			Name:     "neco",
			Grammar:  &g,
			Commands: &commands{},
			Help:     helpFiles,
			Inserts:  map[string]func() string{"keys": keyHelp},
		},
		args,
	)
	if err != nil {
		return err
	}

	o := &operator{ctx: ctx, streams: s, url: g.State, parts: parts, audit: record.Audit{Who: console.Caller()}}
	// The names of arguments follow the command's words in angle brackets.
	o.audit.What, _, _ = strings.Cut(parsed.Command(), " <")
	// Only some commands have the flag --why.
	for _, flag := range parsed.Flags() {
		if flag.Name == "why" {
			o.audit.Why, _ = parsed.FlagValue(flag).(string)
		}
	}

	return withHint(parsed.Run(o))
}
