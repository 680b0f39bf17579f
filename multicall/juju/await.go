package juju

import (
	"context"
	"time"

	"bijou/state"
)

// absence is how long an agent may be gone before it counts as down: one that
// starts again, or has lost its session, is back sooner.
const absence = 15 * time.Second

// awaited is an action or command that somebody waits for.
type awaited struct {
	action state.Action
	output state.Output // once it has ended
	unit   state.Unit
	gone   time.Time // since when its agent has not been there; zero: it is
	stuck  string    // why it is not waited for any longer; empty: it is
}

// settled says if nothing more is to be waited for.
func (a awaited) settled() bool { return a.action.Ended() || a.stuck != "" }

// waiter waits for actions and commands.
type waiter struct {
	o     *operator
	state *state.State
	all   []*awaited
	// progress, if set, is told of what actions say.
	progress func(a state.Action, line state.ActionLine)
}

func newWaiter(o *operator, s *state.State, actions []state.Action) *waiter {
	w := &waiter{o: o, state: s}
	for _, a := range actions {
		w.all = append(w.all, &awaited{action: a})
	}
	return w
}

// wait returns when all have settled, or ctx is done: its error. A store that is
// away is waited for.
func (w *waiter) wait(ctx context.Context) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	f := follower{o: w.o, state: w.state, scopes: []state.Scope{state.WatchPresence()}, patience: w.patience}
	for _, a := range w.all {
		f.scopes = append(f.scopes, state.WatchAction(a.action.ID))
	}
	f.read = func(v *state.View) (func() error, error) {
		fresh, err := w.look(v)
		return func() error {
			for i, a := range fresh {
				w.report(w.all[i].action, a.action)
				*w.all[i] = a
			}
			if w.settled() {
				stop()
			}
			return nil
		}, err
	}
	if err := f.follow(waiting); err != nil || w.settled() {
		return err
	}
	return ctx.Err()
}

func (w *waiter) settled() bool {
	for _, a := range w.all {
		if !a.settled() {
			return false
		}
	}
	return true
}

// look reads how far all are.
func (w *waiter) look(v *state.View) (fresh []awaited, err error) {
	for _, a := range w.all {
		now, err := a.read(v, time.Now())
		if err != nil {
			return nil, err
		}
		fresh = append(fresh, now)
	}
	return fresh, nil
}

// report passes on what an action has said since it was last looked at.
func (w *waiter) report(before, now state.Action) {
	for _, line := range now.Progress {
		known := len(before.Progress) > 0 && !line.Time.After(before.Progress[len(before.Progress)-1].Time)
		if w.progress != nil && !known {
			w.progress(now, line)
		}
	}
}

// read is what there is by now of one that has not settled.
func (a awaited) read(v *state.View, now time.Time) (_ awaited, err error) {
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
	present, err := v.Present(state.UnitAgent(a.action.Unit))
	switch {
	case present || a.unit.Charm == "": // its agent has yet to come
		a.gone = time.Time{}
	case a.gone.IsZero():
		a.gone = now
	}
	if err == nil && !a.gone.IsZero() && now.Sub(a.gone) >= absence {
		a.stuck = "its agent went down"
	}
	if err != nil || a.action.Status != state.ActionPending {
		return a, err
	}
	trouble, err := v.Trouble(state.UnitAgent(a.action.Unit))
	if trouble != nil && now.Sub(trouble.Since) >= absence {
		a.stuck = "its agent cannot go on: " + trouble.Message
	}
	return a, err
}

// patience is how long to wait before looking again, whatever is heard.
func (w *waiter) patience() time.Duration {
	for _, a := range w.all {
		if !a.settled() && !a.gone.IsZero() {
			return time.Second
		}
	}
	return absence
}
