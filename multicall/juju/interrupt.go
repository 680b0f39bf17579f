package juju

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/actions"
)

type interruptCmd struct {
	Unit    string        `arg:"" help:"The unit."`
	Timeout time.Duration `default:"1m" placeholder:"TIME" help:"Wait at most this long for the hook, action or command to end; default 1m."`
}

// Run requests the end of the running hook, and waits for it.
func (c interruptCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		var op state.Op
		err := s.Update(o.ctx, func(tx *state.Tx) (err error) {
			op, err = tx.Interrupt(c.Unit)
			return err
		})
		if err != nil {
			return console.Hint(err, "juju status shows the hooks that units run")
		}

		what := op.Running().Name + " of " + c.Unit
		end, err := c.awaitEnd(o, s, op)
		switch {
		case err != nil || o.ctx.Err() != nil:
			return errors.Join(err, o.ctx.Err())
		case end == "":
			return console.Hint(fmt.Errorf("%s has not ended after %s", what, c.Timeout),
				"it will end once the unit's agent is back: juju status "+c.Unit)
		}

		fmt.Fprintln(o.streams.Out, what, end)
		return nil
	})
}

// awaitEnd returns how the run ended, or "" if it did not end in time. It keeps waiting while the store is
// unreachable.
func (c interruptCmd) awaitEnd(o *operator, s *state.State, op state.Op) (string, error) {
	ctx, stop := context.WithTimeout(o.ctx, c.Timeout)
	defer stop()
	f := follower{o: o, state: s, scopes: []state.Scope{state.WatchUniter(c.Unit)}}

	var end string
	f.read = func(v *state.View) (func() error, error) {
		printNothing := func() error { return nil }
		now, runs, err := v.Op(c.Unit)
		if err != nil || runs && now.ID == op.ID {
			return printNothing, err
		}

		end, err = c.describeEnd(v, op)
		if err == nil {
			// Without ctx, follow returns.
			stop()
		}
		return printNothing, err
	}

	err := f.follow(ctx)
	return end, err
}

// describeEnd returns the end of the message about an interrupted operation. The hook may have ended before
// the interrupt reached it.
func (c interruptCmd) describeEnd(v *state.View, op state.Op) (string, error) {
	if op.Hook.Kind == state.KindAction || op.Hook.Kind == state.KindCommand {
		a, err := actions.Get(v, op.Hook.Action)
		return fmt.Sprintf("has ended: %s", a.Status), err
	}
	// A failure of update-status does not count, since the hook runs again later.
	if op.Hook.Name == "update-status" {
		return "is ended", nil
	}

	runs, err := v.HookRuns(c.Unit)
	if err != nil {
		return "", err
	}

	for _, r := range runs {
		if r.ID == op.ID && r.Failure == "" {
			return "had already succeeded before the interrupt", nil
		}
	}

	return strings.TrimSpace("was ended, and counts as failed; to run the hook again: juju resolved --retry " + c.Unit +
		" " + op.Running().Relation), nil
}
