package decide

import (
	"slices"

	"bijou/agent/hook"
	"bijou/state"
)

// Leader is a service's leadership as its units' hooks are told of it.
type Leader struct {
	Unit    string // who leads; empty if nobody does
	Version int64  // of the leader settings
}

// nextLeaderHook returns an empty string if no hook about the leadership is owed. A unit is
// told when it becomes leader, when it is leader no more, and as another's follower
// whenever the leader settings have changed.
func (s *Snapshot) nextLeaderHook() string {
	l, w, has := s.Leader, s.Uniter.Workflow, s.Hooks
	switch {
	case !has.HasLeadership() || l.Unit == "" || s.Unit.Life != state.Alive:
	case l.Unit == s.Unit.Name && !w.ToldElected && has.LeaderElected:
		return hook.LeaderElected
	case l.Unit == s.Unit.Name:
	case w.ToldElected, l.Version != w.LeaderVersion && has.LeaderSettings:
		return hook.LeaderSettingsChanged // a hook that the charm lacks counts as done, which clears ToldElected
	}
	return ""
}

// isLeaderless keeps a unit's install hook waiting until its service has a leader, since a
// charm may ask in its first hook whether to set up what the whole service shares. It never
// waits long: every unit's agent campaigns.
func (s *Snapshot) isLeaderless() bool { return s.Hooks.HasLeadership() && s.Leader.Unit == "" }

// nextRelationCreated has charms with a relation-created hook enter their relations, and runs the
// hook in each. It comes before the first config-changed for relations that exist by then, as such
// charms rely on: in the hook they ask for what they need of the other side.
func (s *Snapshot) nextRelationCreated() Step {
	for _, id := range s.peersLast() {
		r := s.Relations[id]
		rs, in := s.Uniter.Relations[id]
		switch {
		case s.IsLeaving(id):
		case !in && s.Hooks.HasCreated(r.Name):
			return EnterRelation{r.Relation}
		case rs.CreatedOwed && rs.Failure == nil:
			return RunHook{hook.ForRelation(hook.Created, r.Relation, ""), FromWorkflow}
		}
	}
	return nil
}

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
