package juju

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/text"
)

// agentDownTimeout is how long an agent may be absent before it counts as down. An agent that restarts, or
// has lost its session, returns sooner.
const agentDownTimeout = 15 * time.Second

// awaitedAction is an action for which a command waits, as the command last read it.
type awaitedAction struct {
	action      actions.Action
	output      actions.Output // empty until the action has ended
	unit        state.Unit
	absentSince time.Time // since when the unit's agent has been absent; zero if it is present
	stuckReason string    // why the action is stuck; empty if it is not
	isCancelled bool      // whether this command cancels the action; its stuckReason then stays
}

// isSettled reports whether the wait for the action is over: the action has ended or is stuck.
func (a awaitedAction) isSettled() bool { return a.action.Ended() || a.stuckReason != "" }

// actionWaiter waits until operators' actions and commands have ended.
type actionWaiter struct {
	o       *operator
	state   *state.State
	actions []*awaitedAction
	// progress, if set, is called with each line that an action logs.
	progress func(a actions.Action, line actions.Line)
}

// newActionWaiter returns a waiter for the queued actions.
func newActionWaiter(o *operator, s *state.State, queued []actions.Action) *actionWaiter {
	w := &actionWaiter{o: o, state: s}
	for _, a := range queued {
		w.actions = append(w.actions, &awaitedAction{action: a})
	}
	return w
}

// withTimeout is like [context.WithTimeout], except that a timeout of 0 means no limit.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return context.WithCancel(ctx)
}

// wait blocks until all actions have ended or are stuck. It returns ctx's error if ctx ends first. Once it has read
// the actions, it keeps waiting while the store is unreachable.
func (w *actionWaiter) wait(ctx context.Context) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()

	// The follower reads the actions again after each change of an action or of an agent's presence, and also if
	// pollTimeout expires.
	f := follower{
		o:           w.o,
		state:       w.state,
		scopes:      []state.Scope{state.WatchPresence()},
		pollTimeout: w.pollTimeout,
	}

	for _, a := range w.actions {
		f.scopes = append(f.scopes, actions.Watch(a.action.ID))
	}

	f.read = func(v *state.View) (func() error, error) {
		fresh, err := w.readActions(v)
		if err != nil {
			return nil, err
		}

		report := func() error {
			for i, a := range fresh {
				w.reportProgress(w.actions[i].action, a.action)
				*w.actions[i] = a
			}

			w.showBar()
			if w.allSettled() {
				stop()
			}
			return nil
		}
		return report, nil
	}

	err := f.follow(waiting)
	// A bar with all steps done disappears, even if some actions have not ended.
	w.o.reportSteps(state.Steps{What: actionsEnded, Done: len(w.actions), Total: len(w.actions)})
	if err != nil {
		return err
	}
	if w.allSettled() {
		return nil
	}

	// The follower returns no error if it ends because ctx has ended.
	return ctx.Err()
}

// actionsEnded is the label of the progress bar.
const actionsEnded = "actions ended"

// showBar shows in a progress bar how many of several actions are settled. It shows nothing for a single
// action.
func (w *actionWaiter) showBar() {
	if len(w.actions) == 1 {
		return
	}

	settled := 0
	for _, a := range w.actions {
		if a.isSettled() {
			settled++
		}
	}
	w.o.reportSteps(state.Steps{What: actionsEnded, Done: settled, Total: len(w.actions)})
}

// allSettled reports whether all actions have ended or are stuck.
func (w *actionWaiter) allSettled() bool {
	return !slices.ContainsFunc(w.actions, func(a *awaitedAction) bool { return !a.isSettled() })
}

// readActions returns all awaited actions as the view has them, in the order of w.actions.
func (w *actionWaiter) readActions(v *state.View) (fresh []awaitedAction, err error) {
	for _, a := range w.actions {
		refreshed, err := a.refresh(v, time.Now())
		if err != nil {
			return nil, err
		}
		fresh = append(fresh, refreshed)
	}

	return fresh, nil
}

// reportProgress calls w.progress, if it is set, with the lines that now has and before lacks. before and now
// are two states of the same action.
func (w *actionWaiter) reportProgress(before, now actions.Action) {
	if w.progress == nil {
		return
	}

	// Positions cannot be compared, since an action keeps only its newest lines. Times can.
	reported := before.Progress
	for _, line := range now.Progress {
		isReported := len(reported) > 0 && !line.Time.After(reported[len(reported)-1].Time)
		if !isReported {
			w.progress(now, line)
		}
	}
}

// refresh returns the awaited action as the view has it, with its output if it has ended. It sets stuckReason if
// the agent of the action's unit has been absent for agentDownTimeout. If the action has not begun, refresh also
// sets stuckReason if the agent has been in trouble for agentDownTimeout. If neither is the case any more, refresh
// clears stuckReason, unless this command cancels the action.
func (a awaitedAction) refresh(v *state.View, now time.Time) (_ awaitedAction, err error) {
	if a.action.Ended() {
		// An earlier call has read the final state and the output.
		return a, nil
	}
	if a.action, err = actions.Get(v, a.action.ID); err != nil {
		return a, err
	}
	if a.action.Ended() {
		a.output, err = actions.ReadOutput(v, a.action)
		return a, err
	}
	if a.unit, err = v.Unit(a.action.Unit); err != nil {
		return a, err
	}

	present, err := v.IsPresent(state.UnitAgent(a.action.Unit))
	if err != nil {
		return a, err
	}

	// The reason is found again below if it still applies. For a cancelled action, it is also the reason for
	// the cancellation, which the command prints.
	if !a.isCancelled {
		a.stuckReason = ""
	}

	// A new unit has no charm yet. Its agent may not have started, and does not count as absent.
	unitIsNew := a.unit.Charm == ""
	switch {
	case present || unitIsNew:
		a.absentSince = time.Time{}
	case a.absentSince.IsZero():
		a.absentSince = now
	}

	if !a.absentSince.IsZero() && now.Sub(a.absentSince) >= agentDownTimeout {
		a.stuckReason = "the agent of its unit went down"
	}

	// An action that has begun can end even while the agent is in trouble.
	if a.action.Status == actions.Pending {
		trouble, err := v.Trouble(state.UnitAgent(a.action.Unit))
		if err != nil {
			return a, err
		}
		if trouble != nil && now.Sub(trouble.Since) >= agentDownTimeout {
			a.stuckReason = "the agent of its unit cannot continue: " + trouble.Message
		}
	}

	return a, nil
}

// pollTimeout returns how long to wait for an event before the actions are read again. It is short while an
// agent is absent, since no event reports that the agent stays absent. Otherwise it is the time after which an
// agent's trouble makes an action stuck.
func (w *actionWaiter) pollTimeout() time.Duration {
	for _, a := range w.actions {
		if !a.isSettled() && !a.absentSince.IsZero() {
			return time.Second
		}
	}
	return agentDownTimeout
}

// waitOrCancel waits until all actions have ended or are stuck, the timeout expires, or the operator interrupts
// the command. Then it cancels the actions that have not ended, including stuck ones. reason says whether the
// timeout or an interrupt ended the wait. reason is "" if neither did, or if all actions have ended. A timeout of
// 0 means no limit.
func (w *actionWaiter) waitOrCancel(timeout time.Duration) (reason string, err error) {
	ctx, cancel := withTimeout(w.o.ctx, timeout)
	defer cancel()
	err = w.wait(ctx)
	// Once ctx has ended, the error only says so, and the actions are cancelled below.
	if err != nil && ctx.Err() == nil {
		return "", err
	}

	var remaining []actions.Action
	for _, a := range w.actions {
		if !a.action.Ended() {
			a.isCancelled = true
			remaining = append(remaining, a.action)
		}
	}
	if len(remaining) == 0 {
		return "", nil
	}

	if ctx.Err() != nil {
		reason = fmt.Sprintf("it had not ended after %s", timeout)
	}
	// ctx also ends if the operator interrupts the command, so this reason replaces the one above.
	if w.o.ctx.Err() != nil {
		reason = "interrupted"
	}
	return reason, w.cancelRemaining(remaining)
}

// cancelRemaining cancels the actions, and waits until all actions of w have ended or are stuck. Both together
// take at most cancelTimeout. If only the wait is cut short, it returns no error. It also works after an interrupt.
func (w *actionWaiter) cancelRemaining(remaining []actions.Action) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.o.ctx), cancelTimeout)
	defer cancel()
	if err := cancelActions(ctx, w.state, remaining); err != nil {
		return err
	}

	if err := w.wait(ctx); err != nil && ctx.Err() == nil {
		return err
	}

	return nil
}

// awaitActions waits for actions, and prints them with their outcomes. format is a value of --format, or
// taskFormat. Actions that have not ended after the timeout continue. A timeout of 0 means no limit. The
// error names the actions that have not completed.
func awaitActions(o *operator, s *state.State, queued []actions.Action, timeout time.Duration, format string) error {
	w := newActionWaiter(o, s, queued)
	w.progress = func(a actions.Action, line actions.Line) {
		prefix := ""
		if len(queued) > 1 {
			prefix = a.Unit + ": "
		}
		for _, message := range text.EscapeLines(line.Message) {
			o.note("%s%s %s", prefix, line.Time.Local().Format(time.TimeOnly), message)
		}
	}

	ctx, cancel := withTimeout(o.ctx, timeout)
	defer cancel()
	// Once ctx has ended, outcomeError says which actions continue.
	if err := w.wait(ctx); err != nil && ctx.Err() == nil {
		return err
	}

	err := w.outcomeError(timeout)
	if format == taskFormat {
		// Programs written for Juju tell a failed task from a timeout by the prefix of the error. An interrupt
		// counts as a timeout.
		printErr := printTasks(o, "json", w.actions)
		if w.allSettled() {
			return errors.Join(printErr, taskError(err))
		}
		return errors.Join(printErr, timeoutError(err))
	}

	printErr := printActions(o, w.actions, format)
	return errors.Join(printErr, err)
}

// outcomeError returns an error that names the actions that have not completed, with a hint for each action
// that has not ended. timeout is how long the command has waited. outcomeError returns nil if all actions
// have completed.
func (w *actionWaiter) outcomeError(timeout time.Duration) error {
	var errs []error
	var hints []string
	for _, a := range w.actions {
		subject := fmt.Sprintf("action %d on unit %q", a.action.ID, a.action.Unit)
		switch {
		case a.action.Status == actions.Completed:
			continue
		case a.action.Ended():
			errs = append(errs, fmt.Errorf("%s is %s: %s", subject, a.action.Status, a.action.Message))
			continue
		case a.stuckReason != "":
			errs = append(errs, fmt.Errorf("%s is %s: %s", subject, a.action.Status, a.stuckReason))
		case w.o.ctx.Err() != nil:
			// The operator has interrupted the command before the timeout.
			errs = append(errs, fmt.Errorf("%s is still %s, and continues", subject, a.action.Status))
		default:
			errs = append(errs,
				fmt.Errorf("%s is still %s after %s, and continues", subject, a.action.Status, timeout))
		}

		// Only an action that has not ended gets here.
		hints = append(hints,
			fmt.Sprintf("to wait for it: juju show-operation --wait %d; to end it: juju cancel-task %[1]d", a.action.ID))
	}

	return console.Hint(joinErrors(errs), hints...)
}
