// Package console parses flags and writes to the terminal, the same for every
// applet: `error:` and `hint:` lines, exit codes, colour, tables, progress.
//
// It knows nothing of environments or of any applet. multicall and the packages
// below it import it.
package console

import (
	"fmt"
	"io"
	"os"
	"strings"

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

// CanRedraw reports whether what is written there can be redrawn in place: it is a
// terminal that moves its cursor.
func CanRedraw(stream any) bool { return os.Getenv("TERM") != "dumb" && IsTerminal(stream) }

// Size is a terminal's, in characters.
type Size struct{ Width, Height int }

// SizeOf returns the size of the terminal that the stream is; 80 by 24 if it does not say.
func SizeOf(stream any) Size {
	size := Size{Width: 80, Height: 24}
	f, ok := stream.(*os.File)
	if !ok {
		return size
	}
	if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
		size = Size{Width: w, Height: h}
	}
	return size
}

// Fit cuts a text to the terminal: lines that would be wrapped, and those below its foot,
// which a last line counts. Colours take no room and end with their line.
func Fit(text string, s Size) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) >= s.Height && s.Height > 1 {
		cut := len(lines) - (s.Height - 2)
		lines = append(lines[:s.Height-2:s.Height-2], fmt.Sprintf("... %d lines more", cut))
	}
	for i, line := range lines {
		lines[i] = fitLine(line, s.Width)
	}
	return strings.Join(lines, "\n") + "\n"
}

func fitLine(line string, width int) string {
	n, escape := 0, false
	for i, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case n == width:
			if strings.Contains(line, "\x1b") {
				return line[:i] + "\x1b[0m"
			}
			return line[:i]
		default:
			n++
		}
	}
	return line
}

// Colour is a terminal's way to make a text stand out.
type Colour string

// The colours, as terminals take them (ECMA-48).
const (
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	Bold   Colour = "1"
)

// CanColour reports whether what is written there may have colours: it is a terminal, and
// NO_COLOR (no-color.org) is not set.
func CanColour(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(w)
}

// Paint wraps a text in a colour.
func Paint(c Colour, text string) string { return "\x1b[" + string(c) + "m" + text + "\x1b[0m" }
