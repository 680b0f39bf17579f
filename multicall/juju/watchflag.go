package juju

import (
	"fmt"
	"time"

	"github.com/alecthomas/kong"
)

// watchFlag is --watch, or Juju's --watch TIME.
type watchFlag struct {
	set      bool
	interval time.Duration // 0 to read again only after changes
}

// Decode reads the time, if one is given after "=" or as the next word. It leaves a next word that is not a time, or is
// the machine 0, to the command, as a selector. It returns an error for a time that is not positive and, after "=", for anything but a
// time.
func (w *watchFlag) Decode(ctx *kong.DecodeContext) error {
	w.set = true
	next := ctx.Scan.Peek()
	isAfterEquals := next.Type == kong.FlagValueToken
	if !isAfterEquals && next.Type != kong.UntypedToken {
		return nil
	}

	interval, err := time.ParseDuration(next.String())
	switch {
	case next.String() == "0" && !isAfterEquals:
		// This is machine 0.
	case err == nil && interval > 0:
		w.interval = interval
		ctx.Scan.Pop()
	case err == nil || isAfterEquals:
		return fmt.Errorf("invalid watch interval %q: want a duration such as 1s or 5m", next)
	}

	return nil
}

// IsBool reports that the flag needs no value.
func (watchFlag) IsBool() bool { return true }
