package juju

import (
	"io"

	"bijou/multicall/console"
)

// colourFlags are Juju's, of commands that colour words.
type colourFlags struct {
	Color   bool `xor:"colour" help:"Use colours even where the output is not a terminal."`
	NoColor bool `xor:"colour" help:"Use no colours."`
}

// canColour reports whether to write colours to w: the flags decide, or else the terminal and NO_COLOR.
func (c colourFlags) canColour(w io.Writer) bool {
	return c.Color || !c.NoColor && console.CanColour(w)
}
