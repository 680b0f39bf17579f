package uniter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/agent/hookexec"
	"bijou/hookenv/hookapi"
	"bijou/state"
)

// nextAction waits for the unit's first start, so that a charm's actions find what its
// hooks have made, unless an error is in the way of that.
func (s *Snapshot) nextAction() Step {
	w := s.Uniter.Workflow
	if s.Action == nil || w.Charm == "" || w.Failure == nil && w.NextPlace < firstPlace {
		return nil
	}
	return RunHook{hook.ForAction(*s.Action), FromOperator}
}

// nextWhileRunning waits for the hook in flight, unless an operator interrupts it or its
// time is over. Actions, commands and hooks that an operator holds have no timeout.
func (s *Snapshot) nextWhileRunning() Step {
	op := s.Uniter.Op
	switch {
	case op == nil || s.Ending:
		return Wait{}
	case s.Unit.Interrupts(*op):
		return InterruptHook{whyInterrupted}
	case hook.IsAction(op.Hook):
		if s.Action != nil && s.Action.Cancel && op.Hook.Action == s.Action.ID {
			return InterruptHook{whyCancelled}
		}
		return Wait{}
	case op.Holder != "" || s.HookTimeout <= 0:
		return Wait{}
	}
	due := s.Begun.Add(s.HookTimeout)
	if s.Now.Before(due) {
		return Wait{due}
	}
	return InterruptHook{fmt.Sprintf("it had not ended after the hook-timeout of %s", s.HookTimeout)}
}

// nextAfterCrash runs a hook again that was in flight when an agent died, but never an
// action or a command, nor what an operator has interrupted.
func (s *Snapshot) nextAfterCrash(op state.Op) Step {
	if hook.IsAction(op.Hook) || s.Unit.Interrupts(op) {
		return FailCrashed{}
	}
	return RunHook{op.Hook, FromCrash}
}

const (
	whyKilled    = "its agent died while it ran, and it was ended"
	whyUnknown   = "its agent died before its end was recorded: nobody knows how far it came"
	whyEnding    = "its agent was told to end, and it did not end in time"
	whyCancelled = "cancelled while it ran"

	whyInterrupted = "interrupted by an operator"
)

func actionFacts(a *state.Action) *hookapi.Action {
	if a == nil || a.IsCommand() {
		return nil
	}
	return &hookapi.Action{ID: strconv.Itoa(a.ID), Name: a.Name, Parameters: a.Parameters}
}

func (r *runningHook) withAction(spec hookexec.Spec, a *state.Action) hookexec.Spec {
	if a == nil {
		return spec
	}
	spec.Action, spec.Command, spec.Raw = a.Name, a.Command, r.output.write
	if a.IsCommand() { // what it prints is for the operator, and for no log
		spec.Output = func(hookexec.Stream, time.Time, string) {}
	}
	return spec
}

// actionOutput collects what the process of an action has written, up to state.MaxOutput a
// stream. Its methods may be called from several goroutines.
type actionOutput struct {
	mu  sync.Mutex
	out state.Output
}

func (o *actionOutput) write(s hookexec.Stream, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	to := &o.out.Stdout
	if s == hookexec.Stderr {
		to = &o.out.Stderr
	}
	n := min(len(data), state.MaxOutput-len(*to))
	*to = append(*to, data[:n]...)
	o.out.Dropped += int64(len(data) - n)
}

func (o *actionOutput) get() state.Output {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out
}

// actionOutcome is how an action or a command has ended. Settings are written if its
// process exited with 0, whatever the action says of its success.
type actionOutcome struct {
	status state.ActionStatus
	end    state.ActionEnd
	write  bool
}

func (r *runningHook) actionOutcome() actionOutcome {
	results, failure := r.ctx.ActionEnd()
	o := actionOutcome{status: state.ActionCompleted, end: state.ActionEnd{
		Code: exitCode(r.outcome), Results: results, Output: r.output.get(),
	}}
	switch {
	case r.endReason == whyCancelled && r.outcome.Interrupted:
		o.status, o.end.Message = state.ActionCancelled, r.endReason
	case r.outcome.Interrupted:
		o.status, o.end.Message = state.ActionFailed, r.endReason
	case r.outcome.Failure != "":
		o.status, o.end.Message = state.ActionFailed, r.outcome.Failure
	}
	o.write = o.status == state.ActionCompleted
	if failure != nil && o.status != state.ActionCancelled {
		o.status, o.end.Message = state.ActionFailed, *failure
	}
	return o
}

func exitCode(o hookexec.Outcome) *int {
	if o.Interrupted || o.Failure != "" && o.Code == 0 {
		return nil
	}
	return &o.Code
}

func (u *uniter) recordActionOutcome(ctx context.Context) error {
	r := u.running
	o := r.actionOutcome()
	changes, err := u.commitActionEnd(ctx, r, o)
	if why := explainRefusal(r, err); why != "" {
		o = actionOutcome{state.ActionFailed, state.ActionEnd{Message: why, Code: o.end.Code, Output: o.end.Output}, false}
		changes, err = u.commitActionEnd(ctx, r, o)
	}
	if errors.Is(err, state.ErrNotFound) {
		u.clearRunning() // the unit was removed by force
		return nil
	}
	if err != nil && !errors.Is(err, errRecorded) {
		return err
	}
	u.faultPoint("after-commit")
	u.logActionOutcome(r, o, changes)
	u.clearRunning()
	return nil
}

func (u *uniter) commitActionEnd(ctx context.Context, r *runningHook, o actionOutcome) (changes []hookctx.Change, err error) {
	err = u.commitStep(ctx, "action-end", func(tx *state.Tx) (err error) {
		if err := clearOp(tx, u.Unit, r.op); err != nil {
			return err
		}
		if o.write {
			if changes, err = r.ctx.WriteTo(tx); err != nil {
				return err
			}
		}
		return tx.EndAction(r.op.Hook.Action, o.status, o.end, now())
	})
	return changes, err
}

func (u *uniter) logActionOutcome(r *runningHook, o actionOutcome, changes []hookctx.Change) {
	h := r.op.Hook
	defer u.output.Flush()
	for _, c := range changes {
		u.output.Write("INFO", h.Name, c.String())
	}
	u.Log.Info(h.Kind+" has ended", "id", h.Action, "name", h.Name, "status", o.status, "message", o.end.Message)
	why := ""
	if o.status != state.ActionCompleted {
		why = o.end.Message
	}
	u.logEnd(r, why)
}
