package uniter

import (
	"context"
	"errors"
	"fmt"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/state"
)

// errSettled: the hook's outcome is in the store already; the commit that seemed
// to fail had gone through.
var errSettled = errors.New("the hook's outcome is recorded already")

// conclude records the outcome of the hook whose process has ended, as one
// commit. It can be repeated until it succeeds.
func (u *uniter) conclude(ctx context.Context) error {
	f := u.hook
	if f.result.Interrupted && f.cut == "" {
		u.land()
		return nil
	}
	u.server.Unregister(f.client)
	u.fault("after-exit")
	if hook.IsAsked(f.op.Hook) {
		return u.concludeAsked(ctx)
	}
	var changes []hookctx.Change
	failure := f.result.Failure
	if f.result.Interrupted {
		failure = f.cut
	}
	var err error
	if failure == "" {
		changes, err = u.succeed(ctx, f)
		failure = refusal(f, err)
	}
	if failure != "" {
		err = u.fail(ctx, f.op, f.past(failure))
	}
	if errors.Is(err, state.ErrNotFound) {
		u.land() // the unit was removed by force, as the next snapshot will show
		return nil
	}
	if err != nil && !errors.Is(err, errSettled) {
		return err
	}
	u.ran()
	u.fault("after-commit")
	u.report(f, failure, changes)
	u.land()
	return nil
}

// refusal says why what a hook has written can never be committed; empty if
// trying again may help.
func refusal(f *flight, err error) string {
	switch {
	case errors.Is(err, state.ErrTooLarge):
		return fmt.Sprintf("it changed settings in %d places at once, which is more than one transaction holds: "+
			"about %d are possible; change fewer in one hook", f.ctx.Written(), state.NodesAtOnce)
	case errors.Is(err, state.ErrNotLeader):
		return "it wrote what only the leader may, and its unit does not lead the service any more: nothing of it is kept"
	}
	return ""
}

// succeed commits what the hook has written, and that it is done.
func (u *uniter) succeed(ctx context.Context, f *flight) (changes []hookctx.Change, err error) {
	err = u.record(ctx, "success", func(tx *state.Tx) (err error) {
		if err := settle(tx, u.Unit, f.op); err != nil {
			return err
		}
		if changes, err = f.ctx.Commit(tx); err != nil {
			return err
		}
		if err := u.remember(tx, f.past("").with(changes)); err != nil {
			return err
		}
		return count(tx, u.Unit, f.op.Hook, f.seen())
	})
	return changes, err
}

// seen is the version of what the hook was about, as far as it knew it.
func (f *flight) seen() int64 {
	switch {
	case f.op.Hook.Kind == hook.LeaderSettingsChanged:
		return max(f.op.Version, f.ctx.SeenLeaderSettings())
	case f.op.Hook.Relation == state.NoRelation:
		return max(f.op.Version, f.ctx.SeenConfig())
	}
	return max(f.op.Version, f.ctx.Seen(f.op.Hook.Relation, hook.Member(f.op.Hook)))
}

// fail commits that the hook has failed, and nothing else of it.
func (u *uniter) fail(ctx context.Context, op state.Op, p past) error {
	return u.record(ctx, "failure", func(tx *state.Tx) error {
		if err := settle(tx, u.Unit, op); err != nil {
			return err
		}
		env, err := tx.Environment()
		if err != nil {
			return err
		}
		if err := u.remember(tx, p); err != nil {
			return err
		}
		return blame(tx, u.Unit, op, p, env.RetryHooks())
	})
}

// settle clears the hook in flight, if it is still that one.
func settle(tx *state.Tx, unit string, op state.Op) error {
	now, ok, err := tx.Op(unit)
	if err != nil {
		return err
	}
	if !ok || now.ID != op.ID {
		return errSettled
	}
	return tx.ClearOp(unit)
}

// count records that a hook counts as done, which has seen that version of what
// it was about.
func count(tx *state.Tx, unit string, h state.Hook, seen int64) error {
	// An operator may have answered an error while the hook was being retried.
	if err := tx.ClearResolved(unit, h.Relation); err != nil {
		return err
	}
	if h.Relation == state.NoRelation {
		w, err := tx.Workflow(unit)
		if err != nil {
			return err
		}
		return tx.PutWorkflow(unit, done(w, h, seen))
	}
	rs, _, err := tx.RelationState(unit, h.Relation)
	if err != nil {
		return err
	}
	rs.State, rs.Failure = state.RelationUp, nil
	rs.CreatedOwed = rs.CreatedOwed && h.Kind != hook.Created
	if h.Kind == hook.Broken {
		rs.State = state.RelationDeparted
	}
	if err := tx.PutRelationState(unit, h.Relation, rs); err != nil {
		return err
	}
	return countMember(tx, unit, h, seen)
}

// countMember brings the record of the member that the hook was about up to date.
func countMember(tx *state.Tx, unit string, h state.Hook, seen int64) error {
	name := hook.Member(h)
	if name == "" {
		return nil
	}
	m, ok, err := tx.MemberState(unit, h.Relation, name)
	if err != nil || !ok {
		return err
	}
	if h.Kind == hook.Changed {
		m = hook.Done(m, seen)
	}
	if hook.Forgotten(m) {
		return tx.RemoveMember(unit, h.Relation, name)
	}
	return tx.PutMember(unit, h.Relation, name, m)
}

// blame records that a hook has failed, in the unit's workflow or its relation.
// An update-status may fail: there is always another.
func blame(tx *state.Tx, unit string, op state.Op, p past, retry bool) error {
	h := op.Hook
	if hook.IsAsked(h) {
		return tx.EndAction(h.Action, state.ActionFailed, state.ActionEnd{Message: p.Failure}, now())
	}
	u, err := tx.Unit(unit)
	if err != nil {
		return err
	}
	interrupted := u.Interrupts(op)
	retry = retry && !interrupted
	if h.Relation != state.NoRelation {
		rs, _, err := tx.RelationState(unit, h.Relation)
		if err != nil {
			return err
		}
		rs.State, rs.Failure = state.RelationError, failed(rs.Failure, h, p, retry, now())
		rs.Failure.Interrupted = interrupted
		return tx.PutRelationState(unit, h.Relation, rs)
	}
	st := errorState(h.Kind)
	if st == "" {
		return nil
	}
	w, err := tx.Workflow(unit)
	if err != nil {
		return err
	}
	w.State, w.Failure = st, failed(w.Failure, h, p, retry, now())
	w.Failure.Charm, w.Failure.Interrupted = w.Charm, interrupted
	if h.Kind == hook.ConfigChanged {
		w.ConfigVersion = op.Version // a newer one is owed a hook, even if the operator lets this one count as done
	}
	if h.Kind == hook.LeaderSettingsChanged {
		w.LeaderVersion = op.Version
	}
	return tx.PutWorkflow(unit, w)
}

// report says in both logs how the hook has ended and what it changed.
func (u *uniter) report(f *flight, failure string, changes []hookctx.Change) {
	name := f.op.Hook.Name
	defer u.output.Flush()
	for _, c := range changes {
		u.output.Write("INFO", name, c.String())
	}
	switch {
	case failure != "":
		u.Log.Error("hook failed", "hook", name, "error", failure)
	case f.result.Missing:
		u.Log.Debug("the charm has no such hook", "hook", name)
		return
	default:
		u.Log.Info("hook is done", "hook", name)
	}
	u.logEnd(f, failure)
}
