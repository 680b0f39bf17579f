package console

import (
	"io"
	"os"
)

// Colour is a terminal's way to make a text stand out.
type Colour string

// The colours, as terminals take them (ECMA-48).
const (
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	Bold   Colour = "1"
	Dim    Colour = "2"
)

// CanColour reports whether what is written there may have colours: it is a terminal, and
// NO_COLOR (no-color.org) is not set.
func CanColour(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(w)
}

// Paint wraps a text in a colour.
func Paint(c Colour, text string) string { return "\x1b[" + string(c) + "m" + text + "\x1b[0m" }
