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
	whyKilled  = "its agent died while the action was running, so bijou ended the action"
	whyUnknown = "its agent died before the end of the action was recorded, so the outcome is unknown"
	whyEnding  = "its agent was stopped, and the action did not end in time"
)

// actionFacts returns the action as its tools see it. It returns nil in a hook and in a command.
func actionFacts(a *actions.Action) *hookapi.Action {
	if a == nil || a.IsCommand() {
		return nil
	}
	return &hookapi.Action{ID: strconv.Itoa(a.ID), Name: a.Name, Parameters: a.Parameters}
}

// withAction returns the spec for an action or a command. In a hook, for which a is nil, it returns spec unchanged.
func (r *runningHook) withAction(spec hookexec.Spec, a *actions.Action) hookexec.Spec {
	if a == nil {
		return spec
	}

	spec.Action = a.Name
	spec.Command = a.Command
	spec.Raw = r.output.write
	// The output of a command goes only to the operator, and not to the unit's log.
	if a.IsCommand() {
		spec.Output = func(hookexec.Stream, time.Time, string) {}
	}
	return spec
}

// actionOutput collects the output of an action's process, up to [actions.MaxOutput] bytes of each stream.
// Several goroutines can use it at once.
type actionOutput struct {
	mu  sync.Mutex
	out actions.Output
}

// write adds output from the action. It keeps the first [actions.MaxOutput] bytes of each stream, and counts
// the rest.
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

// actionOutcome is the end of an action or a command.
type actionOutcome struct {
	status actions.Status
	end    actions.Outcome
	// write commits the settings that the action has changed. It is true if the process exited with 0, even
	// if action-fail has marked the action as failed.
	write bool
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
		o.status = actions.Cancelled
		o.end.Message = r.endReason
	case r.outcome.Interrupted:
		o.status = actions.Failed
		o.end.Message = r.endReason
	case r.outcome.Failure != "":
		o.status = actions.Failed
		o.end.Message = r.outcome.Failure
	}

	o.write = o.status == actions.Completed
	if failure != nil && o.status != actions.Cancelled {
		o.status = actions.Failed
		o.end.Message = *failure
	}
	return o
}

// exitCode returns the exit code of an action's process, or nil if the process was interrupted, or failed
// without an exit code.
func exitCode(o hookexec.Outcome) *int {
	if o.Interrupted || o.Failure != "" && o.Code == 0 {
		return nil
	}
	return &o.Code
}

// recordActionOutcome commits the end of the action. If the store refuses the action's changes, it commits the
// action as failed, without its changes.
func (u *uniter) recordActionOutcome(ctx context.Context) error {
	r := u.running
	o := r.actionOutcome()
	changes, err := u.commitActionEnd(ctx, r, o)
	if why := explainRefusal(r, err); why != "" {
		o = actionOutcome{status: actions.Failed, end: actions.Outcome{
			Message: why,
			Code:    o.end.Code,
			Output:  o.end.Output,
		}}
		changes, err = u.commitActionEnd(ctx, r, o)
	}

	return u.finishOutcome(ctx, err, nil, func() { u.logActionOutcome(r, o, changes) })
}

// commitActionEnd commits the action's end and, if o.write is true, its changes.
func (u *uniter) commitActionEnd(
	ctx context.Context,
	r *runningHook,
	o actionOutcome,
) (changes []hookctx.Change, err error) {
	err = u.commitStep(ctx, "action-end", func(tx *state.Tx) (err error) {
		if err := actions.PrefetchEnd(tx, u.Unit, r.op.Hook.Action); err != nil {
			return err
		}
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

// logActionOutcome measures and logs the action's end, and logs the settings that it has changed. A completed
// action has no message.
func (u *uniter) logActionOutcome(r *runningHook, o actionOutcome, changes []hookctx.Change) {
	u.measureHook(r, o.end.Message)
	h := r.op.Hook
	defer u.output.Flush()

	for _, c := range changes {
		u.output.Write("INFO", h.Name, c.String())
	}
	u.Log.Info(h.Kind+" has ended", "id", h.Action, "name", h.Name, "status", o.status, "message", o.end.Message)
	u.logEnd(r, o.end.Message)
}
