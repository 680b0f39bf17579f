package juju

import (
	"io"

	"bijou/multicall/console"
)

// colourFlags are Juju's flags for commands that can print in colour.
type colourFlags struct {
	Color   bool `xor:"colour" help:"Use colours even where the output is not a terminal."`
	NoColor bool `xor:"colour" help:"Use no colours."`
}

// canColour reports whether to write colours to w. Without flags, the terminal and NO_COLOR decide.
func (c colourFlags) canColour(w io.Writer) bool {
	return c.Color || !c.NoColor && console.CanColour(w)
}
