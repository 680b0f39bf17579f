package juju

import (
	"context"
	"errors"
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
	away     bool // the store cannot be reached
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
	for {
		revision, err := w.look(ctx)
		if err == nil && w.settled() {
			return nil
		}
		if err == nil {
			err = w.change(ctx, revision)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, state.ErrAway):
			w.tell(err)
			rest(ctx, comeback)
		case err != nil:
			return err
		}
	}
}

// tell says once that the store is away.
func (w *waiter) tell(err error) {
	if !w.away {
		w.o.note("warning: %v; waiting until it can be read again", err)
	}
	w.away = true
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
func (w *waiter) look(ctx context.Context) (revision int64, err error) {
	var fresh []awaited
	err = w.state.View(ctx, func(v *state.View) (err error) {
		fresh = fresh[:0]
		for _, a := range w.all {
			now, err := a.read(v, time.Now())
			if err != nil {
				return err
			}
			fresh = append(fresh, now)
		}
		revision, err = v.Revision()
		return err
	})
	if err != nil {
		return 0, err
	}
	for i, a := range fresh {
		w.report(w.all[i].action, a.action)
		*w.all[i] = a
	}
	return revision, nil
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

// change returns when something has changed after the revision, or an agent that
// is gone may count as down.
func (w *waiter) change(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, w.patience())
	defer cancel()
	scopes := []state.Scope{state.WatchPresence()}
	for _, a := range w.all {
		scopes = append(scopes, state.WatchAction(a.action.ID))
	}
	watch, err := w.state.Watch(ctx, revision, scopes...)
	if err == nil {
		_, err = watch.Next(ctx)
		watch.Close()
	}
	if errors.Is(err, state.ErrCompacted) || errors.Is(err, context.DeadlineExceeded) {
		return nil // look again
	}
	return err
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
