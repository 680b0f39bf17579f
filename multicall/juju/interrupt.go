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

// Run requests the end of the hook, action or command that the unit runs, waits until it has ended, and
// prints how it ended. It returns an error if the unit runs nothing, or if the end takes longer than --timeout.
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

		subject := op.Running().Name + " of " + c.Unit
		end, err := c.awaitEnd(o, s, op)
		// If the operator interrupts this command, awaitEnd ends without an error.
		if err := errors.Join(err, o.ctx.Err()); err != nil {
			return err
		}
		if end == "" {
			return console.Hint(fmt.Errorf("%s has not ended after %s", subject, c.Timeout),
				"it will end once the unit's agent is back: juju status "+c.Unit)
		}

		fmt.Fprintln(o.streams.Out, subject, end)
		return nil
	})
}

// awaitEnd waits until the operation op has ended, and returns what [interruptCmd.describeEnd] says of the end.
// It returns "" without an error if op has not ended after the timeout, or if the operator interrupts the wait.
// After a first successful read, it keeps waiting while the store is unreachable.
func (c interruptCmd) awaitEnd(o *operator, s *state.State, op state.Op) (string, error) {
	ctx, stop := context.WithTimeout(o.ctx, c.Timeout)
	defer stop()
	f := follower{o: o, state: s, scopes: []state.Scope{state.WatchUniter(c.Unit)}}

	var end string
	f.read = func(v *state.View) (func() error, error) {
		printNothing := func() error { return nil }
		current, isRunning, err := v.Op(c.Unit)
		if err != nil {
			return printNothing, err
		}
		if isRunning && current.ID == op.ID {
			return printNothing, nil
		}

		// The unit runs nothing, or runs a later operation.
		end, err = c.describeEnd(v, op)
		if err == nil {
			// follow returns once ctx is done.
			stop()
		}
		return printNothing, err
	}

	err := f.follow(ctx)
	return end, err
}

// describeEnd returns a clause for Run's message that says how an operation has ended. The clause has the status
// of an action or command. For a hook that failed, except update-status, it has the command that runs the hook
// again. A hook can also have succeeded before the interrupt reached it.
func (c interruptCmd) describeEnd(v *state.View, op state.Op) (string, error) {
	if op.Hook.Kind == state.KindAction || op.Hook.Kind == state.KindCommand {
		a, err := actions.Get(v, op.Hook.Action)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("has ended: %s", a.Status), nil
	}
	// A failure of update-status does not need juju resolved, since the hook runs again later.
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

	// Relation is empty unless the hook belongs to a relation.
	retry := strings.TrimSpace("juju resolved --retry " + c.Unit + " " + op.Running().Relation)
	return "was ended, and counts as failed; to run the hook again: " + retry, nil
}
