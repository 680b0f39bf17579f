// Package decide chooses the next step of a unit: the hook to run, the arrivals to queue, or the relation to
// enter or leave. [Next] takes a [Snapshot] of everything that matters, and returns a [Step]. It does no I/O
// and reads no clock, so every order of events can be tested.
//
// The package does not read the snapshot and does not execute the step. Package uniter does both.
package decide

import (
	"time"

	"bijou/agent/hook"
	"bijou/state"
)

// Next returns the step that the unit takes next. It depends only on the snapshot.
func Next(s Snapshot) Step {
	if s.Gone || s.Unit.Life == state.Dead || s.isFinished() {
		return Finish{}
	}
	if arrivals := s.newArrivals(); len(arrivals) > 0 {
		return Enqueue{arrivals}
	}
	if s.isOrphaned() {
		return SetDying{}
	}

	if s.Running {
		return s.nextWhileRunning()
	}
	if op := s.Uniter.Op; op != nil {
		return s.nextAfterCrash(*op)
	}

	w := s.Uniter.Workflow
	if s.Unit.Life != state.Alive && neverInstalled(w) {
		return Finish{}
	}
	if w.Deploying != "" {
		return DeployCharm{s.wantedCharm()}
	}
	if s.Upgrade.Force && s.wantsUpgrade() {
		return DeployCharm{s.Upgrade.Charm}
	}
	if w.Failure != nil {
		return s.nextWhileFailed(*w.Failure)
	}

	return s.nextInWorkflow()
}

// isFinished reports whether the unit's last hook has run.
func (s *Snapshot) isFinished() bool {
	word := s.Uniter.Workflow.State
	return word == stateRemoved || word == stateStopped && !s.Hooks.Remove
}

// neverInstalled reports whether the unit's install hook has not succeeded.
func neverInstalled(w state.Workflow) bool {
	return w.State == "" || w.Uninstalled || w.Failure != nil && w.Failure.Hook.Kind == hook.Install
}

// wantsUpgrade reports whether the unit must change to another charm. A dying unit keeps its charm.
func (s *Snapshot) wantsUpgrade() bool {
	return s.Unit.Life == state.Alive && s.Upgrade.Wants(s.Unit.Name, s.Uniter.Workflow.Charm)
}

// wantedCharm returns the charm to deploy after an agent died in the middle of a deployment. The unit's
// directory may then contain the old or the new charm, and the operator may have chosen a third one since
// then.
func (s *Snapshot) wantedCharm() string {
	w := s.Uniter.Workflow
	switch {
	case s.wantsUpgrade() && (w.Failure == nil || s.Upgrade.Force):
		return s.Upgrade.Charm
	case w.Charm == "" || w.State == "":
		return s.Charm
	}

	return w.Charm
}

// nextWhileFailed returns the next step of a unit whose own hook has failed. Until the failure is resolved,
// the unit still runs actions.
func (s *Snapshot) nextWhileFailed(f state.Failure) Step {
	step, until := s.nextAfterFailure(state.NoRelation, f, s.Unit.Resolved)
	if step != nil {
		return step
	}
	if action := s.nextAction(); action != nil {
		return action
	}

	return Wait{until}
}

// nextAfterFailure returns the step that an operator has requested for a failed hook, or a retry that is due.
// Otherwise it returns nil, and the time of the next automatic retry. The time is zero if no retry is
// scheduled.
func (s *Snapshot) nextAfterFailure(relation int, f state.Failure, resolved state.Resolved) (Step, time.Time) {
	retry := RunHook{f.Hook, FromFailure}
	switch {
	case resolved == state.ResolvedDone:
		return Resolve{relation}, time.Time{}
	case resolved == state.ResolvedRetry:
		return retry, time.Time{}
	case f.Interrupted || !s.RetryHooks:
		return nil, time.Time{}
	case !s.Now.Before(f.RetryAt):
		return retry, time.Time{}
	}

	return nil, f.RetryAt
}

// nextInWorkflow returns the next step of a unit without a failed hook. Its checks follow the order of the
// unit's life: deploy, upgrade, storage, install, leader, config-changed, start. After an upgrade,
// config-changed comes before the leader hooks.
func (s *Snapshot) nextInWorkflow() Step {
	w := s.Uniter.Workflow
	storage := s.nextStorage()
	hasNewResources := w.ResourcesVersion != s.Resources && w.State != ""

	switch {
	case w.Charm == "", w.State == "" && w.Charm != s.Charm:
		return DeployCharm{s.Charm}
	case s.wantsUpgrade():
		return DeployCharm{s.Upgrade.Charm}
	case w.UpgradeOwed, hasNewResources && s.Unit.Life == state.Alive:
		return RunHook{hook.ForUnit(hook.UpgradeCharm), FromWorkflow}
	case storage != nil && w.State != stateStopped:
		return storage
	case w.State == "" && s.isLeaderless():
		return Wait{}
	case w.State == "":
		return RunHook{hook.ForUnit(hook.Install), FromWorkflow}
	case w.State == stateStopped:
		return RunHook{hook.ForUnit(hook.Remove), FromWorkflow}
	}

	// A dying unit gets no new settings, unless its start hook has yet to run.
	takesConfig := w.State == stateInstalled || s.Unit.Life == state.Alive

	// A new charm sees its settings before any leader hook.
	if w.ConfigOwedFirst && takesConfig {
		return RunHook{hook.ForUnit(hook.ConfigChanged), FromWorkflow}
	}

	if w.State == stateInstalled {
		if step := s.nextRelationCreated(); step != nil {
			return step
		}
	}

	switch {
	case s.nextLeaderHook() != "":
		return RunHook{hook.ForUnit(s.nextLeaderHook()), FromWorkflow}
	case takesConfig && (w.ConfigOwed || w.ConfigVersion != s.ConfigVersion):
		return RunHook{hook.ForUnit(hook.ConfigChanged), FromWorkflow}
	case w.State == stateInstalled:
		return RunHook{hook.ForUnit(hook.Start), FromWorkflow}
	}

	return s.nextAfterStart()
}

// nextAfterStart returns the next step of a unit whose start hook has run. It handles relations, actions, secrets and
// the queue, and the end of a dying unit.
func (s *Snapshot) nextAfterStart() Step {
	if step := s.nextMembership(); step != nil {
		return step
	}
	if step := s.nextAction(); step != nil {
		return step
	}

	retry, retryAt := s.nextRelationFailure()
	if retry != nil {
		return retry
	}
	if step := s.nextRelationCreated(); step != nil {
		return step
	}

	due, dueAt := s.nextSecretHook()
	if due != nil {
		return due
	}
	if e, ok := hook.Pick(s.pendingEntries); ok {
		return RunHook{e.Hook(), FromQueue}
	}

	until := earlierOf(retryAt, dueAt)
	if s.Unit.Life == state.Alive {
		return s.nextWhenIdle(until)
	}

	if len(s.Uniter.Relations) == 0 && len(s.Unit.Subordinates) == 0 {
		return s.nextAtEnd()
	}
	return Wait{until}
}

// nextMembership returns a step that leaves a relation that has ended. If there is none, it returns a step
// that enters a new relation, or nil.
func (s *Snapshot) nextMembership() Step {
	for _, id := range s.enteredRelations() {
		_, exists := s.Relations[id]
		if !exists || s.Uniter.Relations[id].State == state.RelationEnded {
			return LeaveRelation{id}
		}
	}

	for _, id := range sortedKeys(s.Relations) {
		if _, in := s.Uniter.Relations[id]; !in && !s.IsLeaving(id) {
			return EnterRelation{s.Relations[id].Relation}
		}
	}

	return nil
}

// nextRelationFailure returns the next step for a relation in an error state. It returns nil if none is due,
// with the time of the earliest retry. The time is zero if no retry is scheduled.
func (s *Snapshot) nextRelationFailure() (Step, time.Time) {
	var until time.Time
	for _, id := range s.enteredRelations() {
		rs := s.Uniter.Relations[id]
		if rs.Failure == nil {
			continue
		}
		if s.Relations[id].Life == state.Dead {
			// The status no longer shows this relation, so no operator could resolve its failure.
			return Resolve{id}, time.Time{}
		}

		step, due := s.nextAfterFailure(id, *rs.Failure, s.Unit.ResolvedRelations[id])
		if step != nil {
			return step, time.Time{}
		}
		until = earlierOf(until, due)
	}

	return nil, until
}

// pendingEntries yields the queue's entries among which the next hook is chosen. It skips relations in an
// error state. For a relation that the unit leaves, and that has no members left, it yields an entry for the
// broken hook.
func (s *Snapshot) pendingEntries(yield func(hook.Entry) bool) {
	for _, id := range s.enteredRelations() {
		rs := s.Uniter.Relations[id]
		if rs.Failure != nil {
			continue
		}

		relation := s.Relations[id].Relation
		for member, state := range s.Uniter.Members[id] {
			if state.Pending != "" && !yield(hook.Entry{Relation: relation, Member: member, State: state}) {
				return
			}
		}

		if s.IsLeaving(id) && len(s.Uniter.Members[id]) == 0 &&
			!yield(hook.Entry{Relation: relation, State: state.MemberState{Pending: hook.Broken}}) {
			return
		}
	}
}

// CountQueued returns how many members of relations have a hook in the unit's queue.
func (s *Snapshot) CountQueued() (n int) {
	for _, members := range s.Uniter.Members {
		for _, m := range members {
			if m.Pending != "" {
				n++
			}
		}
	}

	return n
}

// nextWhenIdle returns the update-status hook if it is due. Otherwise it waits until update-status is due or
// until the given time, whichever is earlier.
func (s *Snapshot) nextWhenIdle(until time.Time) Step {
	if s.StatusInterval <= 0 {
		return Wait{until}
	}

	due := s.LastHook.Add(s.StatusInterval)
	if !s.Now.Before(due) {
		return RunHook{hook.ForUnit(hook.UpdateStatus), FromWorkflow}
	}

	return Wait{earlierOf(until, due)}
}

// earlierOf returns the earlier time. The zero time means never.
func earlierOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
