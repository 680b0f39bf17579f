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

// asked decides if what an operator has asked for is run now; nil if not. It
// waits for the unit's first start, so that a charm's actions find what its hooks
// have made, unless an error is in the way of that.
func (s *Snapshot) asked() Step {
	w := s.Uniter.Workflow
	if s.Asked == nil || w.Charm == "" || w.Failure == nil && w.NextPlace < firstPlace {
		return nil
	}
	return RunHook{hook.Asked(*s.Asked), FromOperator}
}

// running decides while a hook is in flight: nothing, unless an operator asks for its
// end, or its time is over. What operators have asked for, or hold, takes its time.
func (s *Snapshot) running() Step {
	op := s.Uniter.Op
	switch {
	case op == nil || s.Cut:
		return Wait{}
	case s.Unit.Interrupts(*op):
		return CutShort{whyInterrupted}
	case hook.IsAsked(op.Hook):
		if s.Asked != nil && s.Asked.Cancel && op.Hook.Action == s.Asked.ID {
			return CutShort{whyCancelled}
		}
		return Wait{}
	case op.Holder != "" || s.HookTimeout <= 0:
		return Wait{}
	}
	due := s.Begun.Add(s.HookTimeout)
	if s.Now.Before(due) {
		return Wait{due}
	}
	return CutShort{fmt.Sprintf("it had not ended after the hook-timeout of %s", s.HookTimeout)}
}

// crashed decides about what was in flight when an agent died: a hook is run again,
// but never what an operator has asked for, or has interrupted.
func (s *Snapshot) crashed(op state.Op) Step {
	if hook.IsAsked(op.Hook) || s.Unit.Interrupts(op) {
		return GiveUp{}
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

// giveUp records that what was in flight when an agent died has failed.
func (u *uniter) giveUp(ctx context.Context, op state.Op) error {
	err := u.fail(ctx, op, pastOf(op, whyUnknown))
	if errors.Is(err, errSettled) {
		return nil
	}
	u.output.Write("ERROR", op.Hook.Name, fmt.Sprintf("%s failed: %s", op.Hook, whyUnknown))
	return err
}

// unlessCancelled is nil if what was about to begin has been cancelled meanwhile.
func unlessCancelled(err error, from Origin) error {
	if from == FromOperator && errors.Is(err, state.ErrNotFound) {
		return nil
	}
	return err
}

// cutShort tells what runs to end; its end is concluded as any.
func (f *flight) cutShort(why string) {
	f.cut = why
	f.interrupt()
}

// askedFacts are what tools are told of an action; nil in a command or hook.
func askedFacts(a *state.Action) *hookapi.Action {
	if a == nil || a.IsCommand() {
		return nil
	}
	return &hookapi.Action{ID: strconv.Itoa(a.ID), Name: a.Name, Parameters: a.Parameters}
}

// asks makes the spec of a hook that of what an operator has asked for.
func (f *flight) asks(spec hookexec.Spec, a *state.Action) hookexec.Spec {
	if a == nil {
		return spec
	}
	spec.Action, spec.Command, spec.Raw = a.Name, a.Command, f.kept.write
	if a.IsCommand() { // what it prints is for the operator, and for no log
		spec.Output = func(hookexec.Stream, time.Time, string) {}
	}
	return spec
}

// kept is what the process of an action has written, as far as it is kept. Its
// methods may be called from several goroutines.
type kept struct {
	mu  sync.Mutex
	out state.Output
}

func (k *kept) write(s hookexec.Stream, data []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	to := &k.out.Stdout
	if s == hookexec.Stderr {
		to = &k.out.Stderr
	}
	n := min(len(data), state.MaxOutput-len(*to))
	*to = append(*to, data[:n]...)
	k.out.Dropped += int64(len(data) - n)
}

func (k *kept) output() state.Output {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.out
}

// verdict is how an action or a command has ended. Settings are written if its
// process exited with 0, whatever the action says of its success.
type verdict struct {
	status state.ActionStatus
	end    state.ActionEnd
	write  bool
}

func (f *flight) verdict() verdict {
	results, failure := f.ctx.ActionEnd()
	v := verdict{status: state.ActionCompleted, end: state.ActionEnd{
		Code: code(f.result), Results: results, Output: f.kept.output(),
	}}
	switch {
	case f.cut == whyCancelled && f.result.Interrupted:
		v.status, v.end.Message = state.ActionCancelled, f.cut
	case f.result.Interrupted:
		v.status, v.end.Message = state.ActionFailed, f.cut
	case f.result.Failure != "":
		v.status, v.end.Message = state.ActionFailed, f.result.Failure
	}
	v.write = v.status == state.ActionCompleted
	if failure != nil && v.status != state.ActionCancelled {
		v.status, v.end.Message = state.ActionFailed, *failure
	}
	return v
}

// code is the exit code; nil if the process did not exit by itself.
func code(o hookexec.Outcome) *int {
	if o.Interrupted || o.Failure != "" && o.Code == 0 {
		return nil
	}
	return &o.Code
}

// concludeAsked records how an action or a command has ended, as one commit with
// what it has written.
func (u *uniter) concludeAsked(ctx context.Context) error {
	f := u.hook
	v := f.verdict()
	changes, err := u.endAsked(ctx, f, v)
	if why := refusal(f, err); why != "" {
		v = verdict{state.ActionFailed, state.ActionEnd{Message: why, Code: v.end.Code, Output: v.end.Output}, false}
		changes, err = u.endAsked(ctx, f, v)
	}
	if errors.Is(err, state.ErrNotFound) {
		u.land() // the unit was removed by force
		return nil
	}
	if err != nil && !errors.Is(err, errSettled) {
		return err
	}
	u.fault("after-commit")
	u.reportAsked(f, v, changes)
	u.land()
	return nil
}

func (u *uniter) endAsked(ctx context.Context, f *flight, v verdict) (changes []hookctx.Change, err error) {
	err = u.record(ctx, "action-end", func(tx *state.Tx) (err error) {
		if err := settle(tx, u.Unit, f.op); err != nil {
			return err
		}
		if v.write {
			if changes, err = f.ctx.Commit(tx); err != nil {
				return err
			}
		}
		return tx.EndAction(f.op.Hook.Action, v.status, v.end, now())
	})
	return changes, err
}

// reportAsked says in both logs how it has ended and what it changed.
func (u *uniter) reportAsked(f *flight, v verdict, changes []hookctx.Change) {
	h := f.op.Hook
	defer u.output.Flush()
	for _, c := range changes {
		u.output.Write("INFO", h.Name, c.String())
	}
	u.Log.Info(h.Kind+" has ended", "id", h.Action, "name", h.Name, "status", v.status, "message", v.end.Message)
	why := ""
	if v.status != state.ActionCompleted {
		why = v.end.Message
	}
	u.logEnd(f, why)
}
