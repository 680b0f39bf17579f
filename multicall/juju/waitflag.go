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

// Decode reads the time, if one is given after "=" or as the next word. It leaves a next word that is not a time,
// or is a bare 0, to the command. After "=", it returns an error for anything but a time from 0.
func (w *waitFlag) Decode(ctx *kong.DecodeContext) (err error) {
	w.set = true
	next := ctx.Scan.Peek()
	isAfterEquals := next.Type == kong.FlagValueToken
	if !isAfterEquals {
		_, err := time.ParseDuration(next.String())
		// A bare 0 can be the id of an action.
		isTime := next.IsValue() && err == nil && next.String() != "0"
		if !isTime {
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
