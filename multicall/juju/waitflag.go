package juju

import (
	"fmt"
	"time"

	"github.com/alecthomas/kong"
)

// waitFlag is --wait or --wait=TIME.
type waitFlag struct {
	set     bool
	timeout time.Duration // 0 for no limit
}

// Decode reads the time, if one is given after "=" or as the next word.
func (w *waitFlag) Decode(ctx *kong.DecodeContext) (err error) {
	w.set = true
	if next := ctx.Scan.Peek(); next.Type != kong.FlagValueToken {
		_, err := time.ParseDuration(next.String())
		if !next.IsValue() || err != nil || next.String() == "0" {
			return nil
		}
	}

	text := ctx.Scan.Pop().String()
	w.timeout, err = time.ParseDuration(text)
	if err != nil || w.timeout < 0 {
		return fmt.Errorf("invalid wait time %q: want a duration such as 90s or 5m", text)
	}

	return nil
}

// IsBool reports that the flag needs no value.
func (waitFlag) IsBool() bool { return true }
