package hook

import (
	"slices"

	"bijou/state"
	"bijou/state/charm"
)

// The values of [state.MemberState].State. They record whether a member is in the relation, according to the
// hooks that the unit has begun. The state is empty if no hook for the member has begun.
const (
	In   = "in"
	Left = "left"
)

// Arrive adds a hook of this kind to a member's entry, and returns the entry's new state. The hook can cancel
// or replace the pending hook, as in the table in docs/reference/hooks.md, "The queue". An entry that gets a
// new pending hook moves to tail, the queue's next free place. If the two hooks cancel each other, the entry has no
// pending hook and no place. In all other cases it stays as it is. Arrive cannot cancel a hook that was removed
// from the entry to run.
func Arrive(m state.MemberState, kind string, tail int64) state.MemberState {
	switch {
	case m.Pending == "":
		m.Pending = kind
		m.Place = tail
	case m.Pending == Joined && kind == Departed: // the two hooks cancel each other
		m.Pending = ""
		m.Place = 0
	case m.Pending == Departed && kind == Joined: // for the unit, the member never left
		m.Pending = Changed
		m.Place = tail
	case m.Pending == Changed && kind == Departed:
		m.Pending = Departed
		m.Place = tail
	}

	return m
}

// Take returns the member's state after its pending hook was removed from the queue to run. If that hook is a
// joined hook, a changed hook becomes pending in the same place, even if the joined hook fails later.
func Take(m state.MemberState) state.MemberState {
	switch m.Pending {
	case Joined:
		m.State = In
		m.Pending = Changed
		m.Seen = 0 // isChangedOwed recognizes by this that the changed hook must directly follow
	case Departed:
		m.State = Left
		m.Pending = ""
		m.Place = 0
	default:
		m.Pending = ""
		m.Place = 0
	}

	return m
}

// Done returns the member's state after a changed hook for the member is done. seen is the version of the
// member's settings that the hook has seen. If a pending changed hook would not see a newer version, Done
// drops that hook.
func Done(m state.MemberState, seen int64) state.MemberState {
	m.Seen = max(m.Seen, seen)
	if m.Pending == Changed && m.Version <= m.Seen {
		m.Pending = ""
		m.Place = 0
	}
	return m
}

// IsForgotten reports whether the member's entry can be removed: the member is not in the relation, and no
// hook is pending.
func IsForgotten(m state.MemberState) bool { return m.State != In && m.Pending == "" }

// IsExpected reports whether the member will be in the relation, according to the unit's hooks, once the
// pending hook has run.
func IsExpected(m state.MemberState) bool {
	switch m.Pending {
	case Joined, Changed:
		return true
	case Departed:
		return false
	}

	return m.State == In
}

// isChangedOwed reports whether the pending hook is the changed hook that directly follows a joined hook.
func isChangedOwed(m state.MemberState) bool {
	return m.State == In && m.Pending == Changed && m.Seen == 0
}

// Arrival is a member's new entry in the queue.
type Arrival struct {
	Relation int
	Member   string
	State    state.MemberState
	Known    bool // the queue already has an entry for the member
	Forget   bool // the queue must remove the entry
}

// Arrivals compares the members present in a relation with their recorded state, and returns the queue
// entries that change. These are the entries of members that came, of members that are gone, and of members
// that have newer settings than recorded and no pending hook. If leaving is true, the unit must leave the
// relation, and all members count as gone. tail is the queue's next free place.
//
// A service among the present members stands for its own settings. It has changed hooks, but no joined and
// departed hooks.
func Arrivals(
	relation int,
	recorded map[string]state.MemberState,
	present []state.Member,
	leaving bool,
	tail int64,
) []Arrival {
	if leaving {
		present = nil
	}

	// Each new pending hook gets its own place.
	var arrivals []Arrival
	for _, m := range findChanged(recorded, present, tail) {
		before, isKnown := recorded[m.name]
		after := m.update(before, tail)
		if after.Place == tail {
			tail++
		}

		arrivals = append(arrivals, Arrival{
			Relation: relation,
			Member:   m.name,
			State:    after,
			Known:    isKnown,
			Forget:   IsForgotten(after),
		})
	}

	return arrivals
}

// member is a unit or service that is in the relation, or was in it according to its recorded state.
type member struct {
	name    string
	version int64 // the version of its settings; 0 if it is not in the relation
	in      bool  // it is in the relation
}

// findChanged returns the members whose recorded state must change, sorted by name. It sorts only these
// members, since usually few of many members have changed. It does not keep the changed states, since each of
// them needs its own place in the queue.
func findChanged(recorded map[string]state.MemberState, present []state.Member, tail int64) (changed []member) {
	recordedPresent := 0 // how many recorded members are present
	for _, p := range present {
		before, isRecorded := recorded[p.Unit]
		if isRecorded {
			recordedPresent++
		}

		m := member{name: p.Unit, version: p.Version, in: true}
		if m.update(before, tail) != before {
			changed = append(changed, m)
		}
	}

	if recordedPresent < len(recorded) {
		changed = append(changed, findGone(recorded, present, tail)...)
	}
	slices.SortFunc(changed, func(a, b member) int { return charm.CompareUnits(a.name, b.name) })
	return changed
}

// findGone returns the recorded members that are not present, unless their recorded state already shows that
// they are gone.
func findGone(recorded map[string]state.MemberState, present []state.Member, tail int64) (gone []member) {
	isPresent := make(map[string]bool, len(present))
	for _, p := range present {
		isPresent[p.Unit] = true
	}

	for name, before := range recorded {
		m := member{name: name}
		if !isPresent[name] && m.update(before, tail) != before {
			gone = append(gone, m)
		}
	}

	return gone
}

// update returns the member's new state in the queue. recorded is its previous state there, or zero. update adds
// a hook with [Arrive] if the member has come or is gone, or if it has newer settings and no pending hook.
// Otherwise it returns recorded. But a service that is gone gets a zero state, and a service that is present always
// has the state In.
func (m member) update(recorded state.MemberState, tail int64) state.MemberState {
	// A service has no joined and departed hooks. It is in the relation, or a zero state removes its entry.
	if !IsUnit(m.name) {
		if !m.in {
			return state.MemberState{}
		}
		recorded.State = In
	}

	switch {
	case !m.in && IsExpected(recorded):
		return Arrive(recorded, Departed, tail)
	case m.in && !IsExpected(recorded):
		recorded.Version = m.version
		return Arrive(recorded, Joined, tail)
	case m.in && recorded.Pending == "" && m.version > max(recorded.Version, recorded.Seen):
		recorded.Version = m.version
		return Arrive(recorded, Changed, tail)
	}

	return recorded
}
