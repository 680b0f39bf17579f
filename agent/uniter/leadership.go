package uniter

import (
	"bijou/agent/hook"
	"bijou/state"
)

// Leader is a service's leadership as a unit's hooks are told of it.
type Leader struct {
	Unit    string // who leads; empty if nobody does
	Version int64  // of the leader settings
}

// leaderHook is the hook that is owed about the leadership; empty for none. A
// unit hears that it leads, and when it does no longer; then, and whenever the
// leader settings have changed, that it is another's to say.
func (s *Snapshot) leaderHook() string {
	l, w, has := s.Leader, s.Uniter.Workflow, s.Hooks
	switch {
	case !has.leadership() || l.Unit == "" || s.Unit.Life != state.Alive:
	case l.Unit == s.Unit.Name && !w.Elected && has.Elected:
		return hook.LeaderElected
	case l.Unit == s.Unit.Name:
	case w.Elected, l.Version != w.LeaderVersion && has.Settings:
		return hook.LeaderSettingsChanged // a charm may have the other one only: then it just forgets
	}
	return ""
}

// leaderless is true while nobody leads the service of a charm that cares: its
// unit waits with install until that is decided, as a charm may ask in its first
// hook whether to set up what the whole service shares. Each unit's agent
// campaigns, so that it soon is.
func (s *Snapshot) leaderless() bool { return s.Hooks.leadership() && s.Leader.Unit == "" }

// readLeader reads it for a unit whose charm has hooks about it.
func (s *Snapshot) readLeader(v *state.View) (err error) {
	if !s.Hooks.leadership() {
		return nil
	}
	if s.Leader.Unit, err = v.Leader(s.Unit.Service); err != nil {
		return err
	}
	s.Leader.Version, err = v.LeaderSettingsVersion(s.Unit.Service)
	return err
}
