package juju

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
)

// agentDownTimeout is how long an agent may be absent before it counts as down: one that
// restarts, or has lost its session, is back sooner.
const agentDownTimeout = 15 * time.Second

type awaitedAction struct {
	action      state.Action
	output      state.Output // once it has ended
	unit        state.Unit
	absentSince time.Time // of its agent; zero: it is present
	stuckReason string    // why it is given up; empty: it is still awaited
}

func (a awaitedAction) isSettled() bool { return a.action.Ended() || a.stuckReason != "" }

// actionWaiter waits for actions and commands of operators to end.
type actionWaiter struct {
	o       *operator
	state   *state.State
	actions []*awaitedAction
	// progress, if set, is called with each line that an action logs.
	progress func(a state.Action, line state.ActionLine)
}

func newActionWaiter(o *operator, s *state.State, actions []state.Action) *actionWaiter {
	w := &actionWaiter{o: o, state: s}
	for _, a := range actions {
		w.actions = append(w.actions, &awaitedAction{action: a})
	}
	return w
}

// withTimeout waits without end if the time-out is 0.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return context.WithCancel(ctx)
}

// wait blocks until all have settled, or returns ctx's error. It outlasts a store that is away.
func (w *actionWaiter) wait(ctx context.Context) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	f := follower{o: w.o, state: w.state, scopes: []state.Scope{state.WatchPresence()}, pollTimeout: w.pollTimeout}
	for _, a := range w.actions {
		f.scopes = append(f.scopes, state.WatchAction(a.action.ID))
	}
	f.read = func(v *state.View) (func() error, error) {
		fresh, err := w.readActions(v)
		return func() error {
			for i, a := range fresh {
				w.reportProgress(w.actions[i].action, a.action)
				*w.actions[i] = a
			}
			if w.allSettled() {
				stop()
			}
			return nil
		}, err
	}
	if err := f.follow(waiting); err != nil || w.allSettled() {
		return err
	}
	return ctx.Err()
}

func (w *actionWaiter) allSettled() bool {
	return !slices.ContainsFunc(w.actions, func(a *awaitedAction) bool { return !a.isSettled() })
}

func (w *actionWaiter) readActions(v *state.View) (fresh []awaitedAction, err error) {
	for _, a := range w.actions {
		now, err := a.refresh(v, time.Now())
		if err != nil {
			return nil, err
		}
		fresh = append(fresh, now)
	}
	return fresh, nil
}

func (w *actionWaiter) reportProgress(before, now state.Action) {
	for _, line := range now.Progress {
		known := len(before.Progress) > 0 && !line.Time.After(before.Progress[len(before.Progress)-1].Time)
		if w.progress != nil && !known {
			w.progress(now, line)
		}
	}
}

func (a awaitedAction) refresh(v *state.View, now time.Time) (_ awaitedAction, err error) {
	if a.action.Ended() {
		return a, nil
	}
	if a.action, err = v.Action(a.action.ID); err != nil {
		return a, err
	}
	if a.action.Ended() {
		a.output, err = v.Output(a.action)
		return a, err
	}
	if a.unit, err = v.Unit(a.action.Unit); err != nil {
		return a, err
	}
	present, err := v.IsPresent(state.UnitAgent(a.action.Unit))
	switch {
	case present || a.unit.Charm == "": // its agent has yet to come
		a.absentSince = time.Time{}
	case a.absentSince.IsZero():
		a.absentSince = now
	}
	if err == nil && !a.absentSince.IsZero() && now.Sub(a.absentSince) >= agentDownTimeout {
		a.stuckReason = "its agent went down"
	}
	if err != nil || a.action.Status != state.ActionPending {
		return a, err
	}
	trouble, err := v.Trouble(state.UnitAgent(a.action.Unit))
	if trouble != nil && now.Sub(trouble.Since) >= agentDownTimeout {
		a.stuckReason = "its agent cannot go on: " + trouble.Message
	}
	return a, err
}

// pollTimeout is short while an agent is absent: no event tells that it stayed away.
func (w *actionWaiter) pollTimeout() time.Duration {
	for _, a := range w.actions {
		if !a.isSettled() && !a.absentSince.IsZero() {
			return time.Second
		}
	}
	return agentDownTimeout
}

type runResult struct {
	o            *operator
	actions      []*awaitedAction
	cancelReason string // why those that did not end by themselves were ended

	down []error // of units on which it was not run
}

// print returns the exit code as an error.
func (r runResult) print(format string) error {
	if format == "plain" {
		return r.printPlain()
	}
	errs := r.down
	for _, a := range r.actions {
		if a.action.Status != state.ActionCompleted {
			errs = append(errs, fmt.Errorf("unit %q: %s", a.action.Unit, cmp.Or(a.stuckReason, r.cancelReason, a.action.Message)))
		}
	}
	if err := printTasks(r.o, format, r.actions); err != nil || len(errs) == 0 {
		return err
	}
	return r.exitError([]error{taskError(joinErrors(errs), r.cancelReason != "")})
}

// printPlain prefixes each line with its unit's name if there are several units.
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
		r.o.note("warning: unit %q: %d bytes of output are missing: %d of each stream are kept", a.action.Unit, n, state.MaxOutput)
	}
	return nil
}

// unitError returns nil if the command succeeded, or if the exit code of the only unit says it all.
func (r runResult) unitError(a *awaitedAction) error {
	why := cmp.Or(a.stuckReason, r.cancelReason)
	switch {
	case a.action.Status == state.ActionCompleted:
		return nil
	case a.action.Code != nil && *a.action.Code != 0 && len(r.actions) == 1:
		return nil
	case a.action.Code != nil:
		return fmt.Errorf("unit %q: %s", a.action.Unit, a.action.Message)
	case a.action.Status == state.ActionFailed || why == "":
		return fmt.Errorf("cannot run on unit %q: %s", a.action.Unit, a.action.Message)
	case a.action.Status == state.ActionCancelled && a.action.Started.IsZero():
		return fmt.Errorf("cannot run on unit %q: %s: it was not begun, and will not be", a.action.Unit, why)
	case a.action.Status == state.ActionCancelled:
		return fmt.Errorf("cannot run on unit %q: %s: it was ended", a.action.Unit, why)
	}
	return fmt.Errorf("cannot run on unit %q: %s: what comes of it is shown by: juju show-action-output %d", a.action.Unit, why, a.action.ID)
}

// exitError carries the exit code: that of a single unit's command, else 1 if any failed.
func (r runResult) exitError(errs []error) error {
	code := console.ExitOK
	hasFailed := func(a *awaitedAction) bool { return a.action.Status != state.ActionCompleted }
	if len(r.down) > 0 || slices.ContainsFunc(r.actions, hasFailed) {
		code = console.ExitFailure
	}
	if only := r.actions[0].action.Code; len(r.actions)+len(r.down) == 1 && only != nil && *only != 0 {
		code = *only
	}
	return console.Exit(code, joinErrors(errs))
}
