package decide

import (
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
