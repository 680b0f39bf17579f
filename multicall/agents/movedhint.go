package agents

import (
	"context"
	"errors"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/daemon"
	"bijou/multicall/home"
	"bijou/state"
)

// refuseCopy refuses an environment in a file whose machine 0 is another folder's.
func refuseCopy(ctx context.Context, s *state.State, e home.Environment) error {
	if !strings.HasPrefix(e.State, "sqlite:") {
		return nil
	}
	here, err := daemon.HolderOf(e.MachineDir("0"))
	if err != nil {
		return err
	}
	return withMovedHint(daemon.RetryWhileAway(ctx, func() error {
		return s.View(ctx, func(v *state.View) error { return v.CheckPlace("0", here) })
	}))
}

func withMovedHint(err error) error {
	if !errors.Is(err, state.ErrClaimed) {
		return err
	}
	return console.Hint(err, `if that one is gone, or its folder was moved here: "juju start --moved"; it is never to run beside this one`)
}
