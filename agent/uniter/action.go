package uniter

import (
	"cmp"
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

// The messages for actions and hooks that were still running when their agent ended.
const (
	whyKilled  = "its agent died while the action was running, so bijou ended the action"
	whyUnknown = "its agent died before the outcome was recorded, so the outcome is unknown"
	whyEnding  = "its agent was stopped, and the action did not end in time"
)

// actionFacts returns the action as its hook tools see it. For a hook, where a is nil, and for a command it
// returns nil.
func actionFacts(a *actions.Action) *hookapi.Action {
	if a == nil || a.IsCommand() {
		return nil
	}
	return &hookapi.Action{ID: strconv.Itoa(a.ID), Name: a.Name, Parameters: a.Parameters}
}

// withAction returns the spec of a hook changed so that it runs the action or command a, and collects its output
// for the operator. For a hook, where a is nil, it returns spec unchanged.
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

	kept := &o.out.Stdout
	if s == hookexec.Stderr {
		kept = &o.out.Stderr
	}
	n := min(len(data), actions.MaxOutput-len(*kept))
	*kept = append(*kept, data[:n]...)
	o.out.Dropped += int64(len(data) - n)
}

// get returns the output so far.
func (o *actionOutput) get() actions.Output {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out
}

// actionOutcome is the end of an action or a command.
type actionOutcome struct {
	status actions.Status
	end    actions.Outcome
	// commitChanges is true if the action's changes must be committed. It is true if the process exited with 0,
	// even if action-fail has marked the action as failed.
	commitChanges bool
}

// actionOutcome returns the outcome of the action, whose process has ended. An action that has called action-fail
// counts as failed, with the message of that call, even if its process has succeeded. A cancelled action stays
// cancelled.
func (r *runningHook) actionOutcome() actionOutcome {
	results, failMessage := r.ctx.ActionEnd()
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

	// action-fail changes only the status and the message. So the status without action-fail decides whether the
	// changes are committed.
	o.commitChanges = o.status == actions.Completed
	if failMessage != nil && o.status != actions.Cancelled {
		o.status = actions.Failed
		o.end.Message = *failMessage
	}
	return o
}

// exitCode returns the exit code of an action's process. It returns nil if the process was interrupted, or has
// failed without an exit code.
func exitCode(o hookexec.Outcome) *int {
	failedWithoutCode := o.Failure != "" && o.Code == 0
	if o.Interrupted || failedWithoutCode {
		return nil
	}
	return &o.Code
}

// recordActionOutcome commits the end of the action. If the store refuses the action's changes, it commits the
// action as failed, without its changes and results. If the commit must be tried again, recordActionOutcome
// returns an error, and the caller can call it again.
func (u *uniter) recordActionOutcome(ctx context.Context) error {
	r := u.running
	o := r.actionOutcome()
	changes, err := u.commitActionEnd(ctx, r, o)
	if refusal := explainRefusal(r, err); refusal != "" {
		o = actionOutcome{status: actions.Failed, end: actions.Outcome{
			Message: refusal,
			Code:    o.end.Code,
			Output:  o.end.Output,
		}}
		changes, err = u.commitActionEnd(ctx, r, o)
	}

	// The commit that ends an action never begins a hook, so there is no next hook to start.
	return u.finishOutcome(ctx, err, nil, func() { u.logActionOutcome(r, o, changes) })
}

// commitActionEnd commits the action's end and, if o.commitChanges is true, the action's changes. It returns the
// settings that have changed.
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

		if o.commitChanges {
			if changes, err = r.ctx.AddTo(ctx, tx); err != nil {
				return err
			}
		}

		return actions.End(tx, r.op.Hook.Action, o.status, o.end, now())
	})

	return changes, err
}

// logActionOutcome adds the action to the metrics, and logs its end and the settings that it has changed. The end
// goes to the agent's own log and to the unit's log.
func (u *uniter) logActionOutcome(r *runningHook, o actionOutcome, changes []hookctx.Change) {
	failure := o.end.Message // a completed action has no message
	if o.status == actions.Failed {
		failure = cmp.Or(failure, "failed without a message") // a charm can give an empty one
	}
	u.measureHook(r, failure)
	defer u.output.Flush()

	h := r.op.Hook
	for _, c := range changes {
		u.output.Write("INFO", h.Name, c.String())
	}
	u.Log.Info(h.Kind+" has ended", "id", h.Action, "name", h.Name, "status", o.status, "message", o.end.Message)
	u.logEnd(r, failure)
}
