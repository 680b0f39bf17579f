package uniter

import (
	"fmt"
	"slices"

	"bijou/agent/hook"
	"bijou/agent/uniter/decide"
	"bijou/state"
)

// model is a unit as docs/reference/hooks.md describes it, in a simple form: the queue is a list, and words
// describe the rest. It does not depend on how the agent stores these.
type model struct {
	queue []waiting
	told  map[string]bool  // by relation and member: whether the hooks have seen it join
	owed  map[string]bool  // its joined hook has run, and its first changed hook has not
	known map[string]int64 // the newest version of its settings that is queued or was seen

	installed, started, stopped bool
	upgrade, configure          bool // upgrade-charm and config-changed are due
	configured                  int  // the number of changes of the configuration
	failed                      map[int]state.Hook
	leaving                     map[int]bool // the unit is in the relation, and the relation or the unit is dying
	dying                       bool
}

// waiting is one entry of the queue.
type waiting struct {
	relation hook.Relation
	member   string
	kind     string
	version  int64
}

func newModel() *model {
	return &model{told: map[string]bool{}, owed: map[string]bool{}, known: map[string]int64{}, failed: map[int]state.Hook{}, leaving: map[int]bool{}}
}

func (w waiting) key() string { return memberKey(w.relation.ID, w.member) }

func memberKey(relation int, member string) string { return fmt.Sprint(relation, " ", member) }

func (w waiting) String() string { return w.key() + " " + w.kind }

// pending returns the index of a member's entry, or -1.
func (m *model) pending(relation int, member string) int {
	return slices.IndexFunc(m.queue, func(w waiting) bool { return w.relation.ID == relation && w.member == member })
}

// look compares a member with the known and queued facts about it, and adds a new event to the queue
// according to the table.
func (m *model) look(relation hook.Relation, member string, in bool, version int64) {
	i, key := m.pending(relation.ID, member), memberKey(relation.ID, member)
	arrives := func(kind string) {
		m.queue = append(m.queue, waiting{relation, member, kind, version})
		m.known[key] = max(m.known[key], version)
	}
	kind := ""
	if i >= 0 {
		kind = m.queue[i].kind
	}
	switch {
	case kind == hook.Joined && !in: // joined and departed cancel each other
		m.queue = slices.Delete(m.queue, i, i+1)
	case kind == hook.Changed && !in:
		m.queue = slices.Delete(m.queue, i, i+1)
		arrives(hook.Departed)
	case kind == hook.Departed && in:
		m.queue = slices.Delete(m.queue, i, i+1)
		arrives(hook.Changed)
	case kind != "": // its place in the queue does not change
	case in && !m.told[key]:
		arrives(hook.Joined)
	case !in && m.told[key]:
		arrives(hook.Departed)
	case in && version > m.known[key]:
		arrives(hook.Changed)
	}
}

// next returns the next relation hook from the queue, or nil.
func (m *model) next() *state.Hook {
	var best *waiting
	better := func(w waiting) bool {
		first := func(w waiting) bool { return w.kind == hook.Changed && m.told[w.key()] && m.owed[w.key()] }
		if best == nil || first(w) != first(*best) {
			return best == nil || first(w)
		}
		if w.relation.Peer != best.relation.Peer {
			return !w.relation.Peer
		}
		return w.kind == hook.Broken && best.kind != hook.Broken
	}
	for _, w := range append(slices.Clone(m.queue), m.ending()...) {
		if _, failed := m.failed[w.relation.ID]; !failed && better(w) {
			best = &w
		}
	}
	if best == nil {
		return nil
	}
	h := hook.ForRelation(best.kind, best.relation, best.member)
	return &h
}

// ending returns the broken hooks of relations that the unit has left and that have no members left.
func (m *model) ending() (all []waiting) {
	for id := range relationsOfPlay() {
		r := relationsOfPlay()[id]
		busy := slices.ContainsFunc(m.queue, func(w waiting) bool { return w.relation.ID == r.ID })
		for key, in := range m.told {
			busy = busy || in && keyOf(key) == r.ID
		}
		if m.leaving[r.ID] && !busy {
			all = append(all, waiting{relation: r, kind: hook.Broken})
		}
	}
	return all
}

func keyOf(key string) (relation int) {
	_, _ = fmt.Sscan(key, &relation)
	return relation
}

// begin removes a hook from the queue and runs it with the given version of the settings.
func (m *model) begin(h state.Hook, version int64) {
	i, key := m.pending(h.Relation, h.RemoteUnit), memberKey(h.Relation, h.RemoteUnit)
	switch h.Kind {
	case hook.Joined: // a changed hook must follow it
		m.told[key], m.owed[key] = true, true
		m.queue[i].kind, m.queue[i].version = hook.Changed, max(m.queue[i].version, version)
	case hook.Changed:
		m.queue = slices.Delete(m.queue, i, i+1)
	case hook.Departed:
		m.told[key] = false
		m.queue = slices.Delete(m.queue, i, i+1)
	}
	m.known[key] = max(m.known[key], version)
}

// done records that a hook has succeeded, with the version that it saw. The version is 0 if it is not known.
func (m *model) done(h state.Hook, seen int64, configured int) {
	delete(m.failed, h.Relation)
	i, key := m.pending(h.Relation, h.RemoteUnit), memberKey(h.Relation, h.RemoteUnit)
	switch h.Kind {
	case hook.Install:
		m.installed, m.configure = true, true
	case hook.ConfigChanged:
		m.configure = m.configured != configured
	case hook.UpgradeCharm:
		m.upgrade, m.configure = false, true
	case hook.Start:
		m.started = true
	case hook.Stop:
		m.stopped = true
	case hook.Changed:
		if seen == 0 {
			break
		}
		m.owed[key], m.known[key] = false, max(m.known[key], seen)
		if i >= 0 && m.queue[i].kind == hook.Changed && m.queue[i].version <= seen {
			m.queue = slices.Delete(m.queue, i, i+1)
		}
	case hook.Broken:
		delete(m.leaving, h.Relation)
	}
}

// may returns the reason why a hook must not run now, or "". Only the hook that is next in order may run.
func (m *model) may(h state.Hook, from decide.Cause) string {
	want := m.wanted()
	if f, failed := m.failed[h.Relation]; failed && f == h && from == decide.FromFailure && (h.Relation == state.NoRelation || want == "") {
		return ""
	}
	switch next := m.next(); {
	case want != "":
		if h != hook.ForUnit(want) {
			return "want " + want
		}
	case next != nil && h != *next:
		return fmt.Sprintf("want %s of %s, queue %v", next.Name, next.RemoteUnit, m.queue)
	case next == nil && (h.Kind != hook.Stop || !m.dying):
		return "want none"
	}
	return ""
}

// wanted returns the kind of the unit's own hook that runs before all relation hooks, or "".
func (m *model) wanted() string {
	f, failed := m.failed[state.NoRelation]
	switch {
	case failed:
		return f.Kind
	case m.upgrade:
		return hook.UpgradeCharm
	case !m.installed:
		return hook.Install
	case m.configure && (!m.started || !m.dying):
		return hook.ConfigChanged
	case !m.started:
		return hook.Start
	}
	return ""
}
