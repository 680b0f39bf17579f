package decide

import (
	"fmt"
	"slices"

	"bijou/agent/hook"
	"bijou/state"
)

// nextAction returns the hook of the oldest pending action; nil if there is none. Actions wait for the
// unit's first start, so that they find the files that its hooks make. They do not wait while a failed hook
// keeps the unit from starting.
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

	return InterruptHook{fmt.Sprintf("it had not ended after the hook-timeout of %s", s.HookTimeout)}
}

// nextAfterCrash runs the hook again that was in flight when an agent died. It does not run an action or a
// command again, nor a hook that an operator has interrupted.
func (s *Snapshot) nextAfterCrash(op state.Op) Step {
	if hook.IsAction(op.Hook) || s.Unit.Interrupts(op) {
		return FailCrashed{}
	}
	return RunHook{op.Hook, FromCrash}
}

// Why an operator has a hook in flight end.
const (
	ReasonCancelled = "cancelled while it ran"
	whyInterrupted  = "interrupted by an operator"
)

// nextStorage returns the next step for the unit's storage; nil if there is none. A unit that leaves
// detaches its storage, and releases it only at its end.
func (s *Snapshot) nextStorage() Step {
	for _, one := range s.Storages {
		switch {
		case one.State == state.StorageDetaching:
			return RunHook{hook.ForStorage(hook.StorageDetaching, one), FromWorkflow}
		case s.Unit.Life != state.Alive:
			// A unit that leaves takes no more storage.
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

// nextAtEnd tells a unit that leaves that it loses its storage, before its stop hook.
func (s *Snapshot) nextAtEnd() Step {
	for _, one := range s.Storages {
		if one.State == state.StorageAttached {
			return RunHook{hook.ForStorage(hook.StorageDetaching, one), FromWorkflow}
		}
	}
	return RunHook{hook.ForUnit(hook.Stop), FromWorkflow}
}

// Leader is a service's leadership as its units' hooks are told of it.
type Leader struct {
	Unit    string // who leads; empty if nobody does
	Version int64  // of the leader settings
}

// nextLeaderHook returns the hook about the leadership that the unit must run; empty if there is none. A
// unit runs one when it becomes the leader and when it ceases to be, and as a follower after each change of
// the leader's settings.
func (s *Snapshot) nextLeaderHook() string {
	l := s.Leader
	w := s.Uniter.Workflow
	has := s.Hooks
	switch {
	case !has.HasLeadership() || l.Unit == "" || s.Unit.Life != state.Alive:
		// No hook tells of a leader.
	case l.Unit == s.Unit.Name && !w.ToldElected && has.LeaderElected:
		return hook.LeaderElected
	case l.Unit == s.Unit.Name:
		// The leader itself wrote the leader settings.
	case w.ToldElected, l.Version != w.LeaderVersion && has.LeaderSettings:
		return hook.LeaderSettingsChanged // a hook that the charm lacks counts as done, which clears ToldElected
	}

	return ""
}

// isLeaderless reports whether the unit's service has no leader yet. The install hook waits for one, since
// a charm may ask there whether it must set up what all units share. That wait is short, since every unit's
// agent campaigns.
func (s *Snapshot) isLeaderless() bool { return s.Hooks.HasLeadership() && s.Leader.Unit == "" }

// nextRelationCreated returns the next step towards relation-created hooks: it enters a relation, or runs
// the hook in it. Only charms with such a hook take these steps. They come before the first config-changed,
// since such charms send their requests to the other side in this hook.
func (s *Snapshot) nextRelationCreated() Step {
	for _, id := range s.peersLast() {
		r := s.Relations[id]
		rs, in := s.Uniter.Relations[id]
		switch {
		case s.IsLeaving(id):
			// The unit leaves this relation.
		case !in && s.Hooks.HasCreated(r.Name):
			return EnterRelation{r.Relation}
		case rs.CreatedOwed && rs.Failure == nil:
			return RunHook{hook.ForRelation(hook.Created, r.Relation, ""), FromWorkflow}
		}
	}

	return nil
}

// peersLast returns the ids of the relations, with those among peers at the end.
func (s *Snapshot) peersLast() []int {
	var peers []int
	ids := slices.DeleteFunc(sortedKeys(s.Relations), func(id int) bool {
		if s.Relations[id].Peer {
			peers = append(peers, id)
		}
		return s.Relations[id].Peer
	})

	return append(ids, peers...)
}
