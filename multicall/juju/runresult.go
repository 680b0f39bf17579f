package juju

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state/actions"
)

// runResult is the outcome of a command on several units.
type runResult struct {
	o            *operator
	actions      []*awaitedAction
	cancelReason string // why the actions that had not ended were cancelled

	down []error // an error for each unit on which the command was not run
}

// print prints the outcomes: as text for the format plain, and as tasks under the keys of Juju 3 for any other
// format. If the command did not succeed on all units, the returned error carries the exit code of juju.
func (r runResult) print(format string) error {
	if format == "plain" {
		return r.printPlain()
	}

	errs := slices.Clone(r.down)
	for _, a := range r.actions {
		if a.action.Status != actions.Completed {
			cause := cmp.Or(a.stuckReason, r.cancelReason, a.action.Message)
			errs = append(errs, fmt.Errorf("unit %q: %s", a.action.Unit, cause))
		}
	}

	if err := printTasks(r.o, format, r.actions); err != nil {
		return err
	}
	if len(errs) == 0 {
		return nil
	}

	failedErr := joinErrors(errs)
	// The timeout has passed, or the operator has interrupted the command.
	if r.cancelReason != "" {
		return r.exitError([]error{timeoutError(failedErr)})
	}
	return r.exitError([]error{taskError(failedErr)})
}

// printPlain prints the results as text. Each line begins with the unit's name if there are several actions.
func (r runResult) printPlain() error {
	var errs []error
	for _, a := range r.actions {
		if err := r.printOutput(a); err != nil {
			return err
		}
		if err := r.unitError(a); err != nil {
			errs = append(errs, err)
		}
	}

	return r.exitError(append(errs, r.down...))
}

// printOutput prints the output of an action. If there are several actions, each line begins with the unit's
// name.
func (r runResult) printOutput(a *awaitedAction) error {
	for _, part := range []struct {
		to   io.Writer
		data []byte
	}{{r.o.streams.Out, a.output.Stdout}, {r.o.streams.Err, a.output.Stderr}} {
		data := string(part.data)
		if len(r.actions) > 1 && data != "" {
			head := a.action.Unit + ": "
			data = head + strings.ReplaceAll(strings.TrimSuffix(data, "\n"), "\n", "\n"+head) + "\n"
		}

		if _, err := io.WriteString(part.to, data); err != nil {
			return err
		}
	}

	if n := a.output.Dropped; n > 0 {
		r.o.note("warning: unit %q: %d bytes of output are missing: bijou keeps only %d bytes of each stream",
			a.action.Unit, n, actions.MaxOutput)
	}

	return nil
}

// isOnlyUnit reports whether the command was for one unit. The exit code of its command is then juju's.
func (r runResult) isOnlyUnit() bool { return len(r.actions)+len(r.down) == 1 }

// unitError returns the error of one unit. It returns nil if the command succeeded on that unit, or if this is the
// only unit and exitError makes the command's exit code that of juju.
func (r runResult) unitError(a *awaitedAction) error {
	reason := cmp.Or(a.stuckReason, r.cancelReason)
	switch {
	case a.action.Status == actions.Completed:
		return nil
	case a.action.Code != nil && *a.action.Code != 0 && r.isOnlyUnit():
		return nil
	case a.action.Code != nil:
		// The command has run to its end.
		return fmt.Errorf("unit %q: %s", a.action.Unit, a.action.Message)
	case a.action.Status == actions.Failed || reason == "":
		return fmt.Errorf("cannot run on unit %q: %s", a.action.Unit, a.action.Message)
	case a.action.Status == actions.Cancelled && a.action.Started.IsZero():
		return fmt.Errorf("cannot run on unit %q: %s: bijou cancelled the command before it started", a.action.Unit, reason)
	case a.action.Status == actions.Cancelled:
		return fmt.Errorf("bijou ended the command on unit %q: %s", a.action.Unit, reason)
	}

	return fmt.Errorf("cannot run on unit %q: %s; to see the command's result: juju show-operation %d",
		a.action.Unit, reason, a.action.ID)
}

// exitError returns the errors with juju's exit code: 0 if the command succeeded on all units, and otherwise 1. If
// there is only one unit, and the command ended on it with an exit code other than 0, that is juju's exit code. r
// must have an action.
func (r runResult) exitError(errs []error) error {
	code := console.ExitOK
	hasFailed := func(a *awaitedAction) bool { return a.action.Status != actions.Completed }
	if len(r.down) > 0 || slices.ContainsFunc(r.actions, hasFailed) {
		code = console.ExitFailure
	}

	unitCode := r.actions[0].action.Code
	if r.isOnlyUnit() && unitCode != nil && *unitCode != 0 {
		code = *unitCode
	}

	return console.Exit(code, joinErrors(errs))
}
