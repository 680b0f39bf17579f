package juju

import (
	"fmt"
	"strconv"

	"github.com/alecthomas/kong"
)

// tailFlag is Juju's --tail, or --tail N as in other tools.
type tailFlag struct {
	set   bool
	lines *int // nil if no number is given
}

// Decode reads the number, if one is given after "=" or as the next word. It leaves any other next word to the
// command, since a unit's name is never a number.
func (t *tailFlag) Decode(ctx *kong.DecodeContext) error {
	t.set = true
	next := ctx.Scan.Peek()
	isAfterEquals := next.Type == kong.FlagValueToken
	if !isAfterEquals && next.Type != kong.UntypedToken {
		return nil
	}

	lines, err := strconv.Atoi(next.String())
	switch {
	case err == nil:
		t.lines = &lines
		ctx.Scan.Pop()
	case isAfterEquals:
		return fmt.Errorf("cannot show the last %q lines: want a number", next)
	}

	return nil
}

// IsBool reports that the flag needs no value.
func (tailFlag) IsBool() bool { return true }
