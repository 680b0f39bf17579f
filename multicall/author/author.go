// Package author contains the commands of `charm` for authors of charms: create, proof, test and replay.
//
// The commands run the binary's other applets as processes, as a user would. They do not use agents directly.
package author

import (
	"context"
	"embed"
	"slices"

	"bijou/multicall/author/proof"
	"bijou/multicall/console"
)

// Parts are the parts of the binary that the commands need.
type Parts struct {
	Rules   proof.Rules
	Applets []string // the names of all applets, which scripts can call
	Binary  string   // the path of the binary, which runs as any applet
}

//go:embed help
var helpFiles embed.FS

// grammar is the grammar of `charm`, with a field for each command.
type grammar struct {
	Create createCmd `cmd:"" help:"Create a charm that can be deployed."`
	Test   testCmd   `cmd:"" help:"Run the charm's tests, with real agents and real hooks. Exit code: 1 if a test fails."`
	Replay replayCmd `cmd:"" help:"Turn a hook that a unit has run into a test, which first recreates that unit's state in a fresh model."`
	Proof  proofCmd  `cmd:"" help:"Report the faults of a charm, with file and line. Exit code: 1 if there is an error."`
}

// author is one call of charm.
type author struct {
	ctx     context.Context
	streams console.Streams
	parts   Parts
}

// Main runs one charm command and returns its exit code.
func Main(ctx context.Context, s console.Streams, parts Parts, args []string) int {
	var g grammar
	if i := slices.Index(args, "-run"); i >= 0 {
		// Users of go test type -run.
		args[i] = "--run"
	}
	args = console.OrHelp(args)
	// Users of charmcraft type its commands.
	if err := refuseMissing(args); err != nil {
		return console.Report(s.Err, err)
	}

	parsed, err := console.Parse(s, console.Command{Name: "charm", Grammar: &g, Help: helpFiles}, args)
	if err != nil {
		return console.Report(s.Err, err)
	}

	err = parsed.Run(&author{ctx: ctx, streams: s, parts: parts})
	return console.Report(s.Err, err)
}
