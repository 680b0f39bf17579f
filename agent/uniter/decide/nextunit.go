package decide

import (
	"fmt"

	"bijou/agent/hook"
	"bijou/state"
)

// nextAction returns the hook of the oldest pending action, or nil if no action can run now. Actions wait until
// the unit has a charm. They also wait for its first start hook, so that they find the files that the unit's hooks
// create, unless a failed hook keeps the unit from starting.
func (s *Snapshot) nextAction() Step {
	w := s.Uniter.Workflow
	isStarting := !s.IsQueueOpen() && w.Failure == nil
	if s.Action == nil || w.Charm == "" || isStarting {
		return nil
	}
	return RunHook{hook.ForAction(*s.Action), FromOperator}
}

// nextWhileRunning returns a step that waits for the hook in flight, or a step that interrupts the hook at an
// operator's request or at its timeout. Actions, commands and hooks in a debug session have no timeout.
func (s *Snapshot) nextWhileRunning() Step {
	op := s.Uniter.Op
	if op == nil || s.Ending {
		return Wait{} // the records do not contain the hook, or the hook was already interrupted
	}
	if s.Unit.Interrupts(*op) {
		return InterruptHook{whyInterrupted}
	}

	if hook.IsAction(op.Hook) {
		isCancelled := s.Action != nil && s.Action.Cancel && s.Action.ID == op.Hook.Action
		if isCancelled {
			return InterruptHook{ReasonCancelled}
		}
		return Wait{}
	}

	inDebugSession := op.Holder != ""
	if inDebugSession || s.HookTimeout <= 0 {
		return Wait{}
	}
	due := s.Begun.Add(s.HookTimeout)
	if s.Now.Before(due) {
		return Wait{due}
	}

	return InterruptHook{fmt.Sprintf("the hook had not ended after the hook-timeout of %s", s.HookTimeout)}
}

// nextAfterCrash returns a step that runs the hook in flight again, since its agent died. Actions, commands
// and hooks that an operator has interrupted do not run again: for them it returns a step that records the
// failure.
func (s *Snapshot) nextAfterCrash(op state.Op) Step {
	if hook.IsAction(op.Hook) || s.Unit.Interrupts(op) {
		return FailCrashed{}
	}
	return RunHook{op.Hook, FromCrash}
}

// These are the reasons for interrupting a hook in flight.
const (
	ReasonCancelled = "cancelled while it was running"
	whyInterrupted  = "interrupted by an operator"
)

// nextStorage returns the next step for the unit's storage, or nil if there is no step to take. A dying unit
// only runs storage-detaching hooks that are already due. It gets no more storage, and keeps its storage
// until its end.
func (s *Snapshot) nextStorage() Step {
	for _, storage := range s.Storages {
		if storage.State == state.StorageDetaching {
			return RunHook{hook.ForStorage(hook.StorageDetaching, storage), FromWorkflow}
		}
		if s.Unit.Life != state.Alive {
			continue
		}

		switch storage.State {
		case state.StorageUnbinding:
			return ReleaseStorage{storage.ID}
		case state.StoragePending:
			return BindStorage{storage}
		case state.StorageBound:
			return RunHook{hook.ForStorage(hook.StorageAttached, storage), FromWorkflow}
		}
	}

	return nil
}

// nextAtEnd returns the next of the last hooks of a dying unit: a storage-detaching hook for each attached
// storage, and then stop.
func (s *Snapshot) nextAtEnd() Step {
	for _, storage := range s.Storages {
		if storage.State == state.StorageAttached {
			return RunHook{hook.ForStorage(hook.StorageDetaching, storage), FromWorkflow}
		}
	}
	return RunHook{hook.ForUnit(hook.Stop), FromWorkflow}
}

// Leader describes a service's leadership.
type Leader struct {
	Unit    string // the unit that leads, or empty
	Version int64  // the version of the leader settings
}

// nextLeaderHook returns the kind of the leadership hook that is due, or an empty string. If the charm has
// leader-elected, it is due in a leader whose last leadership hook was not leader-elected. leader-settings-changed is
// due in a former leader whose last leadership hook was leader-elected and, if the charm has it, in a follower after
// a change of the leader settings. Neither is due while the service has no leader, in a dying unit, or for a charm
// without leadership hooks.
func (s *Snapshot) nextLeaderHook() string {
	l := s.Leader
	w := s.Uniter.Workflow
	if !s.Hooks.HasLeadership() || l.Unit == "" || s.Unit.Life != state.Alive {
		return ""
	}

	// The leader itself writes the leader settings, so it runs no hook after a change.
	if l.Unit == s.Unit.Name {
		if s.Hooks.LeaderElected && !w.ToldElected {
			return hook.LeaderElected
		}
		return ""
	}

	// A former leader runs this hook even if the charm does not have it. The hook then counts as done at once,
	// which clears ToldElected.
	isFormerLeader := w.ToldElected
	hasNewSettings := s.Hooks.LeaderSettings && l.Version != w.LeaderVersion
	if isFormerLeader || hasNewSettings {
		return hook.LeaderSettingsChanged
	}
	return ""
}

// isLeaderless reports whether the install hook must wait because the unit's service has no leader yet. The
// hook may call is-leader to decide whether its unit must set up data that all units share. A charm without
// leadership hooks does not wait. The wait is short, since every unit's agent campaigns.
func (s *Snapshot) isLeaderless() bool { return s.Hooks.HasLeadership() && s.Leader.Unit == "" }

// nextRelationCreated returns the next step towards a relation-created hook, or nil. It is a step that enters a
// relation for which the charm has this hook, or a step that runs the hook there. A unit that has not started takes
// these steps before config-changed, except after an upgrade: charms send requests to the remote service in this
// hook.
func (s *Snapshot) nextRelationCreated() Step {
	for _, id := range s.relationIDsPeersLast() {
		if s.IsLeaving(id) {
			continue // no relation-created hook runs in a relation that ends
		}

		r := s.Relations[id]
		rs, isEntered := s.Uniter.Relations[id]
		if !isEntered && s.Hooks.HasCreated(r.Name) {
			return EnterRelation{r.Relation}
		}
		// nextRelationFailure handles a relation in an error state.
		if rs.CreatedOwed && rs.Failure == nil {
			return RunHook{hook.ForRelation(hook.Created, r.Relation, ""), FromWorkflow}
		}
	}

	return nil
}

// relationIDsPeersLast returns the ids of all relations in ascending order, with peer relations at the end.
func (s *Snapshot) relationIDsPeersLast() []int {
	var peers, others []int
	for _, id := range sortedKeys(s.Relations) {
		if s.Relations[id].Peer {
			peers = append(peers, id)
		} else {
			others = append(others, id)
		}
	}

	return append(others, peers...)
}
