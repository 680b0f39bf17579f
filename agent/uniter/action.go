package uniter

import (
	"context"
	"strconv"
	"sync"
	"time"

	"bijou/agent/hookctx"
	"bijou/agent/hookexec"
	"bijou/agent/uniter/decide"
	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/actions"
)

const (
	whyKilled  = "its agent died while it ran, and it was ended"
	whyUnknown = "its agent died before its end was recorded, so its outcome is unknown"
	whyEnding  = "its agent was stopped, and it did not end in time"
)

func actionFacts(a *actions.Action) *hookapi.Action {
	if a == nil || a.IsCommand() {
		return nil
	}
	return &hookapi.Action{ID: strconv.Itoa(a.ID), Name: a.Name, Parameters: a.Parameters}
}

func (r *runningHook) withAction(spec hookexec.Spec, a *actions.Action) hookexec.Spec {
	if a == nil {
		return spec
	}

	spec.Action = a.Name
	spec.Command = a.Command
	spec.Raw = r.output.write
	if a.IsCommand() { // what it prints is for the operator, and for no log
		spec.Output = func(hookexec.Stream, time.Time, string) {}
	}
	return spec
}

// actionOutput collects what the process of an action has written, up to state.MaxOutput a
// stream. Its methods may be called from several goroutines.
type actionOutput struct {
	mu  sync.Mutex
	out actions.Output
}

// write adds output of the action. It keeps the first state.MaxOutput bytes of each stream, and counts the rest.
func (o *actionOutput) write(s hookexec.Stream, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()

	to := &o.out.Stdout
	if s == hookexec.Stderr {
		to = &o.out.Stderr
	}
	n := min(len(data), actions.MaxOutput-len(*to))
	*to = append(*to, data[:n]...)
	o.out.Dropped += int64(len(data) - n)
}

func (o *actionOutput) get() actions.Output {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out
}

// actionOutcome is how an action or a command has ended. Settings are written if its
// process exited with 0, whatever the action says of its success.
type actionOutcome struct {
	status actions.Status
	end    actions.Outcome
	write  bool
}

// actionOutcome returns the status and results of the action that has ended. The hook tool action-fail turns
// a success into a failure.
func (r *runningHook) actionOutcome() actionOutcome {
	results, failure := r.ctx.ActionEnd()
	o := actionOutcome{status: actions.Completed, end: actions.Outcome{
		Code: exitCode(r.outcome), Results: results, Output: r.output.get(),
	}}

	switch {
	case r.endReason == decide.ReasonCancelled && r.outcome.Interrupted:
		o.status, o.end.Message = actions.Cancelled, r.endReason
	case r.outcome.Interrupted:
		o.status, o.end.Message = actions.Failed, r.endReason
	case r.outcome.Failure != "":
		o.status, o.end.Message = actions.Failed, r.outcome.Failure
	}

	o.write = o.status == actions.Completed
	if failure != nil && o.status != actions.Cancelled {
		o.status, o.end.Message = actions.Failed, *failure
	}
	return o
}

func exitCode(o hookexec.Outcome) *int {
	if o.Interrupted || o.Failure != "" && o.Code == 0 {
		return nil
	}
	return &o.Code
}

// recordActionOutcome commits the end of the action. If what it has written is refused, the action fails, and
// nothing is written.
func (u *uniter) recordActionOutcome(ctx context.Context) error {
	r := u.running
	o := r.actionOutcome()
	changes, err := u.commitActionEnd(ctx, r, o)
	if why := explainRefusal(r, err); why != "" {
		o = actionOutcome{actions.Failed, actions.Outcome{
			Message: why,
			Code:    o.end.Code,
			Output:  o.end.Output,
		}, false}
		changes, err = u.commitActionEnd(ctx, r, o)
	}

	return u.finishOutcome(ctx, err, nil, func() { u.logActionOutcome(r, o, changes) })
}

// commitActionEnd commits the action's end and, if o.write, what it has written.
func (u *uniter) commitActionEnd(
	ctx context.Context,
	r *runningHook,
	o actionOutcome,
) (changes []hookctx.Change, err error) {
	err = u.commitStep(ctx, "action-end", func(tx *state.Tx) (err error) {
		if err := clearOp(tx, u.Unit, r.op); err != nil {
			return err
		}

		if o.write {
			if changes, err = r.ctx.AddTo(ctx, tx); err != nil {
				return err
			}
		}

		return actions.End(tx, r.op.Hook.Action, o.status, o.end, now())
	})

	return changes, err
}

// logActionOutcome logs the action's end, and the settings that it has changed.
func (u *uniter) logActionOutcome(r *runningHook, o actionOutcome, changes []hookctx.Change) {
	u.measureHook(r, o.end.Message)
	h := r.op.Hook
	defer u.output.Flush()

	for _, c := range changes {
		u.output.Write("INFO", h.Name, c.String())
	}
	u.Log.Info(h.Kind+" has ended", "id", h.Action, "name", h.Name, "status", o.status, "message", o.end.Message)
	why := ""
	if o.status != actions.Completed {
		why = o.end.Message
	}
	u.logEnd(r, why)
}
