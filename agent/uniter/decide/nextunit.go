package decide

import (
	"fmt"

	"bijou/agent/hook"
	"bijou/state"
)

// nextAction returns the hook of the oldest pending action, or nil if no action can run now. Actions wait for
// the unit's first start hook, so that they find the files that its hooks make. They do not wait if a failed
// hook keeps the unit from starting.
func (s *Snapshot) nextAction() Step {
	w := s.Uniter.Workflow
	if s.Action == nil || w.Charm == "" || w.Failure == nil && w.NextPlace < firstPlace {
		return nil
	}
	return RunHook{hook.ForAction(*s.Action), FromOperator}
}

// nextWhileRunning waits for the hook in flight, or interrupts it at an operator's request or at its timeout.
// Actions, commands and hooks in a debug session have no timeout.
func (s *Snapshot) nextWhileRunning() Step {
	op := s.Uniter.Op
	switch {
	case op == nil || s.Ending:
		return Wait{}
	case s.Unit.Interrupts(*op):
		return InterruptHook{whyInterrupted}
	case hook.IsAction(op.Hook):
		if s.Action != nil && s.Action.Cancel && op.Hook.Action == s.Action.ID {
			return InterruptHook{ReasonCancelled}
		}
		return Wait{}
	case op.Holder != "" || s.HookTimeout <= 0:
		return Wait{}
	}

	due := s.Begun.Add(s.HookTimeout)
	if s.Now.Before(due) {
		return Wait{due}
	}

	return InterruptHook{fmt.Sprintf("the hook had not ended after the hook-timeout of %s", s.HookTimeout)}
}

// nextAfterCrash runs again the hook that was in flight when an agent died. Actions, commands and hooks that
// an operator has interrupted do not run again, and are recorded as failed.
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

// nextStorage returns the next step for the unit's storage, or nil if there is none. A dying unit only runs
// storage-detaching hooks that are already due.
func (s *Snapshot) nextStorage() Step {
	for _, one := range s.Storages {
		switch {
		case one.State == state.StorageDetaching:
			return RunHook{hook.ForStorage(hook.StorageDetaching, one), FromWorkflow}
		case s.Unit.Life != state.Alive:
			// A dying unit gets no further storage, and keeps its storage until its end.
		case one.State == state.StorageUnbinding:
			return ReleaseStorage{one.ID}
		case one.State == state.StoragePending:
			return BindStorage{one}
		case one.State == state.StorageBound:
			return RunHook{hook.ForStorage(hook.StorageAttached, one), FromWorkflow}
		}
	}

	return nil
}

// nextAtEnd returns the last hooks of a dying unit: a storage-detaching hook for each attached storage, then
// stop.
func (s *Snapshot) nextAtEnd() Step {
	for _, one := range s.Storages {
		if one.State == state.StorageAttached {
			return RunHook{hook.ForStorage(hook.StorageDetaching, one), FromWorkflow}
		}
	}
	return RunHook{hook.ForUnit(hook.Stop), FromWorkflow}
}

// Leader describes a service's leadership.
type Leader struct {
	Unit    string // the unit that leads, or empty
	Version int64  // the version of the leader settings
}

// nextLeaderHook returns the kind of the leadership hook that is due, or an empty string. A unit runs such a
// hook when it becomes the leader and when it stops being the leader. A follower also runs one after each
// change of the leader settings.
func (s *Snapshot) nextLeaderHook() string {
	l := s.Leader
	w := s.Uniter.Workflow
	has := s.Hooks
	switch {
	case !has.HasLeadership() || l.Unit == "" || s.Unit.Life != state.Alive:
		// No leadership hook can run.
	case l.Unit == s.Unit.Name && !w.ToldElected && has.LeaderElected:
		return hook.LeaderElected
	case l.Unit == s.Unit.Name:
		// The leader itself wrote the leader settings.
	case w.ToldElected, l.Version != w.LeaderVersion && has.LeaderSettings:
		// A former leader runs this hook even if the charm lacks it. It then counts as done at once, which
		// clears ToldElected.
		return hook.LeaderSettingsChanged
	}

	return ""
}

// isLeaderless reports whether the unit's service has no leader yet. The install hook waits for a leader,
// since it may call is-leader to decide whether its unit must set up data that all units share. The wait is
// short, since every unit's agent campaigns.
func (s *Snapshot) isLeaderless() bool { return s.Hooks.HasLeadership() && s.Leader.Unit == "" }

// nextRelationCreated returns the next step towards a relation-created hook: it enters a relation, or runs the
// hook there. Only charms with such a hook take these steps. They come before the first config-changed, since
// these charms send their requests to the remote service in relation-created.
func (s *Snapshot) nextRelationCreated() Step {
	for _, id := range s.sortPeersLast() {
		r := s.Relations[id]
		rs, in := s.Uniter.Relations[id]
		switch {
		case s.IsLeaving(id):
			// No relation-created hook runs in a relation that ends.
		case !in && s.Hooks.HasCreated(r.Name):
			return EnterRelation{r.Relation}
		case rs.CreatedOwed && rs.Failure == nil:
			return RunHook{hook.ForRelation(hook.Created, r.Relation, ""), FromWorkflow}
		}
	}

	return nil
}

// sortPeersLast returns the ids of all relations in ascending order, with peer relations at the end.
func (s *Snapshot) sortPeersLast() []int {
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
