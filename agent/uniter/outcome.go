package uniter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/agent/uniter/decide"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/secret/record"
)

// errRecorded is returned if the outcome is already in the store, because an earlier commit that seemed to
// fail has succeeded.
var errRecorded = errors.New("the hook's outcome has already been recorded")

// recordOutcome commits the outcome of the hook that has ended, as a success or a failure. If the store
// refuses the hook's writes for good, the hook counts as failed. If the commit of a success has also begun
// the next hook, recordOutcome starts that hook. If the commit must be tried again, recordOutcome returns an
// error, and the caller can call it again.
//
// If the hook must run again, recordOutcome commits nothing, and leaves the hook's operation in the store.
// That is the case after an interruption without a reason, or if the unit has lost the leadership that the
// hook's writes need. An action that lacks this leadership counts as failed instead.
func (u *uniter) recordOutcome(ctx context.Context) error {
	r := u.running
	u.lastHookEnd = r.endedAt
	if r.outcome.Interrupted && r.endReason == "" {
		u.leaveInFlight()
		return nil
	}

	u.server.Unregister(r.op.ClientID) // processes that the hook has left can no longer call its tools
	u.faultPoint("after-exit")
	if hook.IsAction(r.op.Hook) {
		return u.recordActionOutcome(ctx)
	}

	failure := r.outcome.Failure
	if r.outcome.Interrupted {
		failure = r.endReason
	}
	if failure != "" {
		return u.recordHookFailure(ctx, r, failure)
	}

	changes, next, err := u.commitSuccess(ctx, r, u.mayContinue(ctx))
	if errors.Is(err, state.ErrTooLarge) {
		// Without the next hook the transaction may be small enough.
		const mayContinue = false
		changes, next, err = u.commitSuccess(ctx, r, mayContinue)
	}

	refusal := explainRefusal(r, err)
	if errors.Is(err, state.ErrNotLeader) {
		// The charm did not cause this failure, so the hook runs again and does not count as failed.
		u.logEnd(r, refusal+"; it runs again")
		u.leaveInFlight()
		return nil
	}
	if refusal != "" {
		return u.recordHookFailure(ctx, r, refusal)
	}

	return u.finishOutcome(ctx, err, next, func() { u.logOutcome(r, "", changes) })
}

// recordHookFailure commits that the hook has failed, without its changes.
func (u *uniter) recordHookFailure(ctx context.Context, r *runningHook, failure string) error {
	err := u.commitFailure(ctx, r.op, r.runRecord(failure))
	// The commit begins no next hook, and the hook's changed settings are dropped.
	return u.finishOutcome(ctx, err, nil, func() { u.logOutcome(r, failure, nil) })
}

// leaveInFlight forgets the running hook, but keeps the hook's operation in the store. So the loop, or the next
// agent, runs the hook again as after a crash.
func (u *uniter) leaveInFlight() {
	u.clearRunning()
	u.releaseTicket()
}

// finishOutcome ends the hook in flight after the commit of its outcome. err is the error of that commit, and
// next is the hook that the same commit began, or nil. If the outcome is in the store, finishOutcome calls
// log, and then starts next or releases the unit's ticket. If the commit failed because the unit is dead or
// gone, finishOutcome only ends the hook and releases the ticket. If the commit must be tried again, it
// returns err and changes nothing.
func (u *uniter) finishOutcome(ctx context.Context, err error, next *runningHook, log func()) error {
	// A unit that was removed by force has no outcome to record. The next snapshot shows that the unit is
	// gone. A gateway denies the writes of a unit that is dead or gone.
	gone := errors.Is(err, state.ErrNotFound)
	if errors.Is(err, state.ErrDenied) {
		dead, readErr := state.Read(ctx, u.State, func(v *state.View) (bool, error) { return isDead(v, u.Unit) })
		gone = readErr == nil && dead
	}

	isRecorded := err == nil || errors.Is(err, errRecorded)
	if !isRecorded && !gone {
		return err
	}

	if !gone {
		u.faultPoint("after-commit")
		log()
	}

	u.clearRunning()
	if next != nil && err == nil { // after errRecorded, this commit has not begun next
		u.spawn(ctx, next)
		return nil
	}
	u.releaseTicket()
	return nil
}

// explainRefusal returns the reason why the hook's writes can never be committed, given the error of their
// commit. It returns an empty string if there is no error, or if a retry can help.
func explainRefusal(r *runningHook, err error) string {
	switch {
	case errors.Is(err, state.ErrTooLarge):
		return fmt.Sprintf("the hook changed settings in %d places at once, but a transaction can hold only about %d: "+
			"change fewer in one hook", r.ctx.CountChangedNodes(), state.MaxNodesPerUpdate)
	case errors.Is(err, state.ErrNotLeader):
		return "the hook changed settings that only the leader can change, but its unit no longer leads the application: " +
			"its changes are dropped"
	case errors.Is(err, state.ErrDenied):
		return fmt.Sprintf("the hook tried to change records that its machine has no right to change, so all changes of the hook are dropped: %s", err)
	}

	return ""
}

// commitSuccess commits the writes of a hook that has succeeded, its record in the history, and the workflow
// after the hook. If mayContinue is true, the same transaction also begins the next hook, if there is one.
// commitSuccess returns the settings that have changed, and the next hook or nil. Unless there is an error,
// the caller must start the next hook. The error is errRecorded if the outcome was recorded before.
func (u *uniter) commitSuccess(
	ctx context.Context,
	r *runningHook,
	mayContinue bool,
) (changes []hookctx.Change, next *runningHook, err error) {
	rec := r.runRecord("") // no failure
	attempts := 0

	err = u.commitStep(ctx, "success", func(tx *state.Tx) (err error) {
		attempts++
		if attempts > 1 {
			u.cache.invalidate() // prepareNext may have applied the writes of the previous attempt to the cache
			next = nil
		}

		if err := clearOp(tx, u.Unit, r.op); err != nil {
			return err
		}
		if changes, err = r.ctx.AddTo(ctx, tx); err != nil {
			return err
		}
		if err := u.addRunRecord(tx, rec.withChanges(changes)); err != nil {
			return err
		}
		if err := recordDone(tx, u.Unit, r.op.Hook, r.seenVersion()); err != nil {
			return err
		}

		if !mayContinue {
			return nil
		}
		next = u.prepareNext(tx)
		if next == nil {
			return nil
		}
		return next.recordBegin(tx, u.Unit)
	})

	u.countRunRecord(rec, err)
	return changes, next, err
}

// seenVersion returns the newest version of the hook's subject that the hook is known to have seen. The subject is
// that of [subjectVersion]. A hook tool may have read a newer version than the one with which the hook began.
func (r *runningHook) seenVersion() int64 {
	switch {
	case r.op.Hook.Kind == hook.LeaderSettingsChanged:
		return max(r.op.Version, r.ctx.SeenLeaderSettings())
	case r.op.Hook.Kind == hook.Install || r.op.Hook.Kind == hook.UpgradeCharm:
		// The context does not note which resources the tools have read.
		return r.op.Version
	case r.op.Hook.Relation == state.NoRelation:
		return max(r.op.Version, r.ctx.SeenConfig())
	}

	return max(r.op.Version, r.ctx.SeenSettings(r.op.Hook.Relation, hook.Member(r.op.Hook)))
}

// commitFailure commits that the hook has failed and when to retry it, and adds the run to the history. It returns
// errRecorded if the outcome was recorded before.
func (u *uniter) commitFailure(ctx context.Context, op state.Op, r runRecord) error {
	err := u.commitStep(ctx, "failure", func(tx *state.Tx) error {
		if err := clearOp(tx, u.Unit, op); err != nil {
			return err
		}

		env, err := tx.Environment()
		if err != nil {
			return err
		}
		if err := u.addRunRecord(tx, r); err != nil {
			return err
		}

		return recordFailure(tx, u.Unit, op, r, env.RetryHooks())
	})

	u.countRunRecord(r, err)
	return err
}

// clearOp removes the operation in flight from the unit's records, as the first part of an outcome. It
// returns errRecorded if the outcome was recorded before.
func clearOp(tx *state.Tx, unit string, op state.Op) error {
	if err := tx.PrefetchHook(unit, op.Hook.Relation, hook.Member(op.Hook)); err != nil {
		return err
	}

	recorded, inFlight, err := tx.Op(unit)
	if err != nil {
		return err
	}
	if !inFlight || recorded.ID != op.ID {
		return errRecorded
	}

	return tx.ClearOp(unit)
}

// recordDone records that the hook is done, since it succeeded or an operator has resolved its failure. seen
// is the version of the hook's subject that the hook has seen.
func recordDone(tx *state.Tx, unit string, h state.Hook, seen int64) error {
	// An operator may have resolved the failure while the hook was already being retried.
	if err := tx.ClearResolved(unit, h.Relation); err != nil {
		return err
	}

	if h.Relation != state.NoRelation {
		return recordRelationHook(tx, unit, h, seen)
	}

	err := tx.ChangeWorkflow(unit, func(w *state.Workflow) { *w = decide.WithHookDone(*w, h, seen) })
	if err != nil {
		return err
	}
	if err := recordSecretHook(tx, unit, h); err != nil {
		return err
	}
	return recordStorageHook(tx, h)
}

// recordRelationHook records that a relation hook is done. It marks the relation as up, or as ended after a
// broken hook, and clears the relation's failure. It also updates the queue's entry of the member that the
// hook concerns.
func recordRelationHook(tx *state.Tx, unit string, h state.Hook, seen int64) error {
	rs, _, err := tx.RelationState(unit, h.Relation)
	if err != nil {
		return err
	}

	rs.State = state.RelationUp
	rs.Failure = nil
	switch h.Kind {
	case hook.Created:
		rs.CreatedOwed = false
	case hook.Broken:
		rs.State = state.RelationEnded
	}
	if err := tx.PutRelationState(unit, h.Relation, rs); err != nil {
		return err
	}

	return updateMember(tx, unit, h, seen)
}

// recordSecretHook records that a hook about a secret is done. It does nothing for other hooks, or if the secret
// is gone, for example because the hook itself has removed it.
func recordSecretHook(tx *state.Tx, unit string, h state.Hook) error {
	if h.Secret == "" {
		return nil
	}

	r, err := record.Get(tx.View, h.Secret)
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}

	decide.SecretHookDone(&r, unit, h, now())
	return record.Put(tx, r)
}

// recordStorageHook records that a hook about a storage is done. It does nothing for other hooks.
func recordStorageHook(tx *state.Tx, h state.Hook) error {
	if h.Storage == "" {
		return nil
	}

	attached := h.Kind == hook.StorageAttached
	return tx.EndStorageHook(h.Storage, attached)
}

// updateMember updates the queue's entry of the member that a relation hook concerns. After a changed hook it
// records which version of the member's settings the hook has seen. It removes the entry of a member that has
// departed. It does nothing if the hook concerns no member, or the member has no entry.
func updateMember(tx *state.Tx, unit string, h state.Hook, seen int64) error {
	name := hook.Member(h)
	if name == "" {
		return nil
	}
	m, hasEntry, err := tx.MemberState(unit, h.Relation, name)
	if err != nil {
		return err
	}
	if !hasEntry {
		return nil
	}

	if h.Kind == hook.Changed {
		m = hook.Done(m, seen)
	}
	if hook.IsForgotten(m) {
		tx.RemoveMember(unit, h.Relation, name)
		return nil
	}

	return tx.PutMember(unit, h.Relation, name, m)
}

// recordFailure puts the unit's workflow, or the hook's relation, into an error state. For an action it
// records that the action has failed. A failed update-status hook causes no error state, since it runs again
// at the next interval. If retry is true, a hook in an error state runs again after a backoff, unless an
// operator has interrupted it.
func recordFailure(tx *state.Tx, unit string, op state.Op, r runRecord, retry bool) error {
	h := op.Hook
	if hook.IsAction(h) {
		return actions.End(tx, h.Action, actions.Failed, actions.Outcome{Message: r.Failure}, now())
	}

	u, err := tx.Unit(unit)
	if err != nil {
		return err
	}
	interrupted := u.Interrupts(op)
	if interrupted {
		retry = false
	}
	failureAfter := func(before *state.Failure) *state.Failure {
		f := newFailure(before, h, r, retry, now())
		f.Interrupted = interrupted
		f.ClientID = op.ClientID
		return f
	}

	if h.Relation != state.NoRelation {
		rs, _, err := tx.RelationState(unit, h.Relation)
		if err != nil {
			return err
		}
		rs.State = state.RelationError
		rs.Failure = failureAfter(rs.Failure)
		return tx.PutRelationState(unit, h.Relation, rs)
	}

	errorState := decide.ErrorState(h.Kind)
	if errorState == "" {
		return nil // update-status
	}
	return tx.ChangeWorkflow(unit, func(w *state.Workflow) {
		// Storage hooks run before install, and install must still run if a storage hook has failed.
		beforeInstall := w.State == "" || w.Uninstalled
		w.Uninstalled = beforeInstall && h.Storage != ""
		w.State = errorState
		w.Failure = failureAfter(w.Failure)
		w.Failure.Charm = w.Charm
		// Once an operator has resolved the failure, the same version must not make a hook due again.
		noteSeenVersion(w, op)
	})
}

// noteSeenVersion records with which version of the configuration, the leader's settings or the resources the
// failed hook began. It does nothing for hooks that concern none of them.
func noteSeenVersion(w *state.Workflow, op state.Op) {
	switch op.Hook.Kind {
	case hook.ConfigChanged:
		w.ConfigVersion = op.Version
	case hook.LeaderSettingsChanged:
		w.LeaderVersion = op.Version
	case hook.Install, hook.UpgradeCharm:
		w.ResourcesVersion = op.Version
	}
}

// newFailure returns the failure to record for a hook. before is the previous failure, or nil. If the same
// hook has failed before, newFailure keeps the time of the first failure, and increases the attempts and the
// backoff. A hook whose agent died does not increase the backoff. If retry is true, newFailure sets the time
// of the next attempt.
func newFailure(before *state.Failure, h state.Hook, r runRecord, retry bool, now time.Time) *state.Failure {
	f := &state.Failure{
		Hook:     h,
		Message:  r.Failure,
		Stderr:   r.stderr,
		Logged:   r.logged,
		Since:    now.UTC(),
		Attempts: 1,
	}

	if before != nil && before.Hook == h {
		f.Since = before.Since
		f.Attempts = before.Attempts + 1
		f.Backoff = before.Backoff
	}

	if !r.orphaned {
		f.Backoff++ // the number of failures for RetryDelay
	}
	if retry {
		f.RetryAt = now.Add(decide.RetryDelay(f.Backoff)).UTC()
	}
	return f
}
