// Package author has the commands of `charm`, for those who write charms: proof.
//
// It knows no agent and no environment. Only multicall imports it.
package author

import (
	"context"
	"embed"

	"bijou/multicall/author/proof"
	"bijou/multicall/console"
)

// Parts are the rest of the binary, as far as the commands need it.
type Parts struct {
	Rules proof.Rules
}

//go:embed help
var helpFiles embed.FS

type grammar struct {
	Proof proofCmd `cmd:"" help:"Say what is wrong with a charm, by file and line. Exit code: 1 if there is an error."`
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
	parsed, err := console.Parse(s, console.Command{Name: "charm", Grammar: &g, Help: helpFiles}, console.OrHelp(args))
	if err == nil {
		err = parsed.Run(&author{ctx: ctx, streams: s, parts: parts})
	}
	return console.Report(s.Err, err)
}
