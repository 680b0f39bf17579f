// Package author has the commands of `charm`, for those who write charms: create, proof, test and replay.
//
// It drives the other applets as processes, as its user would, and knows no agent. Only multicall
// imports it.
package author

import (
	"context"
	"embed"
	"slices"

	"bijou/multicall/author/proof"
	"bijou/multicall/console"
)

// Parts are the rest of the binary, as far as the commands need it.
type Parts struct {
	Rules   proof.Rules
	Applets []string // the names of all, which scripts may call
	Binary  string   // which is all of them
}

//go:embed help
var helpFiles embed.FS

type grammar struct {
	Create createCmd `cmd:"" help:"Begin a charm that deploys."`
	Test   testCmd   `cmd:"" help:"Run the charm's tests, with real agents and real hooks. Exit code: 1 if one fails."`
	Replay replayCmd `cmd:"" help:"Make a test of a hook that a unit has run: it brings a fresh model to that unit's state."`
	Proof  proofCmd  `cmd:"" help:"Say what is wrong with a charm, by file and line. Exit code: 1 if there is an error."`
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
		args[i] = "--run" // as it is typed for tests of Go
	}
	args = console.OrHelp(args)
	if err := refuseMissing(args); err != nil {
		return console.Report(s.Err, err)
	}

	parsed, err := console.Parse(s, console.Command{Name: "charm", Grammar: &g, Help: helpFiles}, args)
	if err == nil {
		err = parsed.Run(&author{ctx: ctx, streams: s, parts: parts})
	}
	return console.Report(s.Err, err)
}
