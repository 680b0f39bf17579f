package uniter

import (
	"errors"
	"slices"

	"bijou/agent/hook"
	"bijou/state"
)

// Leader is a service's leadership as a unit's hooks are told of it.
type Leader struct {
	Unit    string // who leads; empty if nobody does
	Version int64  // of the leader settings
	Hooks   LeaderHooks
}

// LeaderHooks says which hooks about leadership a charm has.
type LeaderHooks struct {
	Charm             string // its URL
	Elected, Settings bool
}

func (h LeaderHooks) any() bool { return h.Elected || h.Settings }

// leaderHook is the hook that is owed about the leadership; empty for none. A
// unit hears that it leads, and when it does no longer; then, and whenever the
// leader settings have changed, that it is another's to say.
func (s *Snapshot) leaderHook() string {
	l, w := s.Leader, s.Uniter.Workflow
	switch {
	case !l.Hooks.any() || l.Unit == "" || s.Unit.Life != state.Alive:
	case l.Unit == s.Unit.Name && !w.Elected && l.Hooks.Elected:
		return hook.LeaderElected
	case l.Unit == s.Unit.Name:
	case w.Elected, l.Version != w.LeaderVersion && l.Hooks.Settings:
		return hook.LeaderSettingsChanged // a charm may have the other one only: then it just forgets
	}
	return ""
}

// readLeader reads it for a unit whose charm has hooks about it. known are those
// of the charm that the unit was last seen with: a charm never changes.
func (s *Snapshot) readLeader(v *state.View, known LeaderHooks) (err error) {
	l := &s.Leader
	if l.Hooks = known; known.Charm != s.Uniter.Workflow.Charm {
		if l.Hooks, err = leaderHooks(v, s.Uniter.Workflow.Charm); err != nil {
			return err
		}
	}
	if !l.Hooks.any() {
		return nil
	}
	if l.Unit, err = v.Leader(s.Unit.Service); err != nil {
		return err
	}
	l.Version, err = v.LeaderSettingsVersion(s.Unit.Service)
	return err
}

// leaderHooks reads which of them a charm has.
func leaderHooks(v *state.View, url string) (h LeaderHooks, err error) {
	if url == "" {
		return h, nil
	}
	c, err := v.Charm(url)
	if errors.Is(err, state.ErrNotFound) {
		return h, nil // whoever needs the charm will say so
	}
	has := func(name string) bool { return c.HasDispatch || slices.Contains(c.Hooks, name) }
	return LeaderHooks{Charm: url, Elected: has(hook.LeaderElected), Settings: has(hook.LeaderSettingsChanged)}, err
}
