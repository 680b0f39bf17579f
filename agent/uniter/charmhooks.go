package uniter

import (
	"errors"
	"os"
	"path/filepath"
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
	Dialect        charm.Dialect // of its hooks; only the modern one has relation-changed for a service's own settings
	CreatedIn      []string      // relations with a relation-created hook, by the charm's names for them
	Made           []string      // files in the charm's folder of hooks, which hooks may have made
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
		return CharmHooks{Made: known.Made}, nil // whoever needs the charm will say so
	}
	if err != nil {
		return CharmHooks{}, err
	}
	h := newCharmHooks(url, c, known.Made)
	h.Dialect = service.DialectOf(c)
	return h, nil
}

func newCharmHooks(url string, c state.Charm, made []string) CharmHooks {
	names := append(slices.Clone(c.Hooks), made...)
	has := func(name string) bool { return c.HasDispatch || slices.Contains(names, name) }
	h := CharmHooks{
		Charm:          url,
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

// noteMadeHooks looks for hooks that a hook has made, as charms do whose install links all
// others to itself: once, and after each hook.
func (u *uniter) noteMadeHooks() {
	if u.madeHooksAt.Equal(u.lastHookEnd) {
		return
	}
	u.madeHooksAt = u.lastHookEnd
	var made []string
	entries, _ := os.ReadDir(filepath.Join(u.Folder.Charm(), "hooks")) // whoever runs a hook says what is wrong with it
	for _, e := range entries {
		if !e.IsDir() {
			made = append(made, e.Name())
		}
	}
	if !slices.Equal(made, u.cache.madeHooks) {
		u.cache.madeHooks = made
		u.cache.invalidate()
	}
}
