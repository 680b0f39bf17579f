package juju

import (
	"context"
	"slices"
	"time"

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

// wait blocks until all have settled, or returns ctx's error. It outlasts a store that is
// away.
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
