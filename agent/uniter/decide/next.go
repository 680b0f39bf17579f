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

// Next returns the step that the unit takes next. The step depends only on the snapshot.
func Next(s Snapshot) Step {
	if s.Gone || s.Unit.Life == state.Dead || s.isFinished() {
		return Finish{}
	}
	if arrivals := s.newArrivals(); len(arrivals) > 0 {
		return Enqueue{arrivals}
	}
	if s.isOrphaned() { // a subordinate that no longer has a relation to its principal
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
		return Finish{} // no last hooks run for a charm that was not installed
	}
	if w.Deploying != "" { // a deployment was not completed, or a restored unit must repeat it
		return DeployCharm{s.wantedCharm()}
	}
	if s.Upgrade.Force && s.wantsUpgrade() { // a forced upgrade does not wait for a failed hook
		return DeployCharm{s.Upgrade.Charm}
	}
	if w.Failure != nil {
		return s.nextWhileFailed(*w.Failure)
	}

	return s.nextInWorkflow()
}

// isFinished reports whether the unit's last hook has run: remove, or stop if the charm does not have remove.
func (s *Snapshot) isFinished() bool {
	switch s.Uniter.Workflow.State {
	case stateRemoved:
		return true
	case stateStopped:
		return !s.Hooks.Remove
	}

	return false
}

// neverInstalled reports whether the unit's install hook has not succeeded.
func neverInstalled(w state.Workflow) bool {
	installFailed := w.Failure != nil && w.Failure.Hook.Kind == hook.Install
	return w.State == "" || w.Uninstalled || installFailed
}

// wantsUpgrade reports whether the unit must change to another charm. A dying unit keeps its charm.
func (s *Snapshot) wantsUpgrade() bool {
	return s.Unit.Life == state.Alive && s.Upgrade.Wants(s.Unit.Name, s.Uniter.Workflow.Charm)
}

// wantedCharm returns the charm to deploy if a deployment was not completed, for example because the agent died, or
// if the unit was restored from a backup. The unit's directory may then contain the old or the new charm, and an
// operator may have chosen a third charm since then.
func (s *Snapshot) wantedCharm() string {
	w := s.Uniter.Workflow
	canUpgrade := w.Failure == nil || s.Upgrade.Force // only a forced upgrade does not wait for a failed hook
	if canUpgrade && s.wantsUpgrade() {
		return s.Upgrade.Charm
	}

	followsService := w.Charm == "" || w.State == "" // the install hook has neither succeeded nor failed
	if followsService {
		return s.Charm
	}

	// The unit keeps the charm in its records, even if its directory already contains another one.
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
// scheduled. relation is the hook's relation or [state.NoRelation], and resolved is the operator's request.
func (s *Snapshot) nextAfterFailure(relation int, f state.Failure, resolved state.Resolved) (Step, time.Time) {
	retry := RunHook{f.Hook, FromFailure}
	switch {
	case resolved == state.ResolvedDone:
		return Resolve{relation}, time.Time{}
	case resolved == state.ResolvedRetry:
		return retry, time.Time{}
	case f.Interrupted || !s.RetryHooks:
		return nil, time.Time{}
	case !s.Now.Before(f.RetryAt): // also if retries were disabled when the hook failed, so RetryAt is zero
		return retry, time.Time{}
	}

	return nil, f.RetryAt
}

// nextInWorkflow returns the next step of a unit without a failed hook. Its checks follow the order of the
// unit's life: deploy, upgrade, storage, install. The steps after that, up to stop, follow in nextAfterInstall.
// After stop, the unit runs remove.
func (s *Snapshot) nextInWorkflow() Step {
	w := s.Uniter.Workflow
	isAlive := s.Unit.Life == state.Alive
	isNew := w.State == "" // the install hook has neither succeeded nor failed

	// Until install, the unit follows the service's charm.
	needsFirstCharm := w.Charm == "" || isNew && w.Charm != s.Charm
	if needsFirstCharm {
		return DeployCharm{s.Charm}
	}
	if s.wantsUpgrade() {
		return DeployCharm{s.Upgrade.Charm}
	}
	hasNewResources := isAlive && !isNew && w.ResourcesVersion != s.Resources
	if w.UpgradeOwed || hasNewResources {
		return RunHook{hook.ForUnit(hook.UpgradeCharm), FromWorkflow}
	}

	// A stopped unit takes no more steps for its storage.
	if step := s.nextStorage(); step != nil && w.State != stateStopped {
		return step
	}

	switch {
	case isNew && s.isLeaderless(): // the install hook may ask which unit leads
		return Wait{}
	case isNew:
		return RunHook{hook.ForUnit(hook.Install), FromWorkflow}
	case w.State == stateStopped:
		return RunHook{hook.ForUnit(hook.Remove), FromWorkflow}
	}

	return s.nextAfterInstall()
}

// nextAfterInstall returns the next step of a unit whose install hook has run. Its checks follow the order of
// the unit's life: relation-created, leader hooks, config-changed, start. After an upgrade, config-changed
// comes first. The steps after start follow in nextAfterStart.
func (s *Snapshot) nextAfterInstall() Step {
	w := s.Uniter.Workflow
	beforeStart := w.State == stateInstalled

	// A dying unit gets no new settings, except before its start hook.
	takesConfig := beforeStart || s.Unit.Life == state.Alive

	// A new charm sees its settings before any leader hook.
	if w.ConfigOwedFirst && takesConfig {
		return RunHook{hook.ForUnit(hook.ConfigChanged), FromWorkflow}
	}
	if beforeStart {
		if step := s.nextRelationCreated(); step != nil {
			return step
		}
	}
	if kind := s.nextLeaderHook(); kind != "" {
		return RunHook{hook.ForUnit(kind), FromWorkflow}
	}

	needsConfig := w.ConfigOwed || w.ConfigVersion != s.ConfigVersion
	if needsConfig && takesConfig {
		return RunHook{hook.ForUnit(hook.ConfigChanged), FromWorkflow}
	}
	if beforeStart {
		return RunHook{hook.ForUnit(hook.Start), FromWorkflow}
	}

	return s.nextAfterStart()
}

// nextAfterStart returns the next step of a unit whose start hook has run. It handles relations, actions,
// secrets and the queue, and then update-status, or the end of a dying unit.
func (s *Snapshot) nextAfterStart() Step {
	if step := s.nextMembership(); step != nil {
		return step
	}
	if step := s.nextAction(); step != nil {
		return step
	}

	afterFailure, retryAt := s.nextRelationFailure()
	if afterFailure != nil {
		return afterFailure
	}
	if step := s.nextRelationCreated(); step != nil {
		return step
	}

	secretHook, secretAt := s.nextSecretHook()
	if secretHook != nil {
		return secretHook
	}
	if e, ok := hook.Pick(s.pendingEntries); ok {
		return RunHook{e.Hook(), FromQueue}
	}

	until := earlierOf(retryAt, secretAt)
	if s.Unit.Life == state.Alive {
		return s.nextWhenIdle(until)
	}

	// A dying unit ends after its relations and its subordinates.
	if len(s.Uniter.Relations) == 0 && len(s.Unit.Subordinates) == 0 {
		return s.nextAtEnd()
	}
	return Wait{until}
}

// nextMembership returns a step that leaves a relation that has ended. If no relation has ended, it returns a
// step that enters a new relation, or nil.
func (s *Snapshot) nextMembership() Step {
	for _, id := range s.enteredRelations() {
		_, exists := s.Relations[id] // false only if AddVanishedRelations does not know the relation's name
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

// nextRelationFailure returns the next step for a relation in an error state. If no step is due, it returns
// nil and the time of the earliest retry. The time is zero if no retry is scheduled.
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
		for name, m := range s.Uniter.Members[id] {
			if m.Pending != "" && !yield(hook.Entry{Relation: relation, Member: name, State: m}) {
				return
			}
		}

		if s.IsLeaving(id) && len(s.Uniter.Members[id]) == 0 {
			broken := hook.Entry{Relation: relation, State: state.MemberState{Pending: hook.Broken}}
			if !yield(broken) {
				return
			}
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

// nextWhenIdle returns the update-status hook if it is due. Otherwise it returns a Wait that ends when
// update-status is due or at the given time, whichever is earlier.
func (s *Snapshot) nextWhenIdle(until time.Time) Step {
	if s.StatusInterval <= 0 {
		return Wait{until} // update-status is disabled
	}

	due := s.LastHook.Add(s.StatusInterval)
	if !s.Now.Before(due) {
		return RunHook{hook.ForUnit(hook.UpdateStatus), FromWorkflow}
	}

	return Wait{earlierOf(until, due)}
}

// earlierOf returns the earlier of two times. The zero time stands for never.
func earlierOf(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}

	isEarlier := !b.IsZero() && b.Before(a)
	if isEarlier {
		return b
	}
	return a
}
