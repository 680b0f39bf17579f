package decide

import (
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
	Name           string // the charm's, by its metadata
	LeaderElected  bool
	LeaderSettings bool // leader-settings-changed
	Remove         bool
	Dispatch       bool
	Dialect        charm.Dialect // of its hooks; only the modern one has relation-changed for a service's own settings
	CreatedIn      []string      // relations with a relation-created hook, by the charm's names for them
	Made           []string      // files in the charm's folder of hooks, which hooks may have made
}

// HasLeadership reports whether the charm has a hook about its service's leadership.
func (h CharmHooks) HasLeadership() bool { return h.LeaderElected || h.LeaderSettings }

// HasCreated reports whether the charm has a relation-created hook for the relation.
func (h CharmHooks) HasCreated(relation string) bool {
	return h.Dispatch || slices.Contains(h.CreatedIn, relation)
}

// NewCharmHooks returns the hooks of a charm, those that its hooks have made among them; the
// dialect is not set.
func NewCharmHooks(url string, c state.Charm, made []string) CharmHooks {
	names := append(slices.Clone(c.Hooks), made...)
	has := func(name string) bool { return c.HasDispatch || slices.Contains(names, name) }
	h := CharmHooks{
		Charm:          url,
		Name:           c.Meta.Name,
		LeaderElected:  has(hook.LeaderElected),
		LeaderSettings: has(hook.LeaderSettingsChanged),
		Remove:         has(hook.Remove),
		Dispatch:       c.HasDispatch,
		Made:           made,
	}
	for _, name := range names {
		if relation, ok := strings.CutSuffix(name, "-"+hook.Created); ok && !slices.Contains(h.CreatedIn, relation) {
			h.CreatedIn = append(h.CreatedIn, relation)
		}
	}
	return h
}
