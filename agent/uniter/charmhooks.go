package uniter

import (
	"errors"
	"slices"
	"strings"

	"bijou/agent/hook"
	"bijou/state"
	"bijou/state/charm"
)

// CharmHooks lists those hooks of a charm that are not run, nor their causes read, for a
// charm that lacks them. A charm with a dispatch file has them all.
type CharmHooks struct {
	Charm          string // the charm's URL
	LeaderElected  bool
	LeaderSettings bool // leader-settings-changed
	Remove         bool
	Dispatch       bool
	AppSettings    bool     // relation-changed for a service's own settings, of any charm of the modern dialect
	CreatedIn      []string // relations with a relation-created hook, by the charm's names for them
}

func (h CharmHooks) hasLeadership() bool { return h.LeaderElected || h.LeaderSettings }

func (h CharmHooks) hasCreated(relation string) bool {
	return h.Dispatch || slices.Contains(h.CreatedIn, relation)
}

// readCharmHooks reads nothing if known are the hooks of that charm: a charm never changes.
func readCharmHooks(v *state.View, service state.Service, url string, known CharmHooks) (CharmHooks, error) {
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
	h := newCharmHooks(url, c)
	h.AppSettings = service.DialectOf(c) == charm.Modern
	return h, nil
}

func newCharmHooks(url string, c state.Charm) CharmHooks {
	has := func(name string) bool { return c.HasDispatch || slices.Contains(c.Hooks, name) }
	h := CharmHooks{
		Charm:          url,
		LeaderElected:  has(hook.LeaderElected),
		LeaderSettings: has(hook.LeaderSettingsChanged),
		Remove:         has(hook.Remove),
		Dispatch:       c.HasDispatch,
	}
	for _, name := range c.Hooks {
		if relation, ok := strings.CutSuffix(name, "-"+hook.Created); ok {
			h.CreatedIn = append(h.CreatedIn, relation)
		}
	}
	return h
}
