// Package console parses flags and writes to the terminal, the same for every
// applet: `error:` and `hint:` lines, exit codes, colour, tables, progress.
//
// It knows nothing of environments or of any applet. multicall and the packages
// below it import it.
package console

import (
	"io"
	"os"

	"golang.org/x/term"
)

// The exit codes of every applet but the hook tools.
const (
	ExitOK      = 0
	ExitFailure = 1   // it was tried and failed
	ExitUsage   = 2   // it was asked for wrongly; nothing was tried
	ExitUnknown = 127 // there is no such applet, as shells have it
)

// Streams are an applet's three standard streams. Out carries data only.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Process returns the streams of this process.
func Process() Streams {
	return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
}

// IsTerminal reports whether the stream is a terminal that somebody looks at.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
