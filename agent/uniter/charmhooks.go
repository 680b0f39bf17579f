package uniter

import (
	"errors"
	"slices"
	"strings"

	"bijou/agent/hook"
	"bijou/state"
	"bijou/state/charm"
)

// CharmHooks says which of the hooks a charm has that are not run, nor their
// causes looked at, for a charm that lacks them. A charm with a dispatch file has
// them all.
type CharmHooks struct {
	Charm             string // its URL
	Elected, Settings bool   // about leadership
	Remove            bool
	Dispatch          bool
	Services          bool     // relation-changed for a service's own settings, of any charm of the modern dialect
	CreatedIn         []string // the relations, by the charm's names for them
}

// leadership is true if it has hooks about that.
func (h CharmHooks) leadership() bool { return h.Elected || h.Settings }

// created is true if it has a relation-created hook for the relation.
func (h CharmHooks) created(relation string) bool {
	return h.Dispatch || slices.Contains(h.CreatedIn, relation)
}

// charmHooks reads which of them a charm has. known are those of the charm that
// the unit was last seen with: a charm never changes.
func charmHooks(v *state.View, service state.Service, url string, known CharmHooks) (CharmHooks, error) {
	if url == "" || url == known.Charm {
		return known, nil
	}
	c, err := v.Charm(url)
	if errors.Is(err, state.ErrNotFound) {
		return CharmHooks{}, nil // whoever needs the charm will say so
	}
	if err != nil {
		return CharmHooks{}, err
	}
	h := hooksOf(url, c)
	h.Services = service.DialectOf(c) == charm.Modern
	return h, nil
}

// hooksOf says which of them the charm has.
func hooksOf(url string, c state.Charm) CharmHooks {
	has := func(name string) bool { return c.HasDispatch || slices.Contains(c.Hooks, name) }
	h := CharmHooks{
		Charm:    url,
		Elected:  has(hook.LeaderElected),
		Settings: has(hook.LeaderSettingsChanged),
		Remove:   has(hook.Remove),
		Dispatch: c.HasDispatch,
	}
	for _, name := range c.Hooks {
		if relation, ok := strings.CutSuffix(name, "-"+hook.Created); ok {
			h.CreatedIn = append(h.CreatedIn, relation)
		}
	}
	return h
}
