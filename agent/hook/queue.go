package hook

import (
	"slices"

	"bijou/state"
	"bijou/state/charm"
)

// The values of [state.MemberState].State. They record whether, for the unit's hooks and the hook in flight,
// a member is in the relation or has left it. The state is empty if no hook for the member has begun.
const (
	In   = "in"
	Left = "left"
)

// Arrive adds a hook of this kind to a member's entry. The hook can also cancel or replace the pending one,
// by the table in docs/reference/hooks.md, "The queue". An entry that gets a new pending hook moves to the
// tail. A hook that was removed from the entry to run can no longer be cancelled.
func Arrive(m state.MemberState, kind string, tail int64) state.MemberState {
	switch [2]string{m.Pending, kind} {
	case [2]string{Joined, Departed}:
		m.Pending = ""
		m.Place = 0
	case [2]string{Departed, Joined}:
		m.Pending = Changed
		m.Place = tail
	case [2]string{"", kind}, [2]string{Changed, Departed}:
		m.Pending = kind
		m.Place = tail
	}

	return m
}

// Take returns the member's state after its pending hook was removed from the queue to run. After a joined
// hook a changed hook is pending in the same place, whether or not the joined hook succeeds.
func Take(m state.MemberState) state.MemberState {
	switch m.Pending {
	case Joined:
		m.State = In
		m.Pending = Changed
		m.Seen = 0
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

// Done returns the member's state after a changed hook for it is done. seen is the version of the member's
// settings that the hook has seen. It drops a pending changed hook that would see no newer version.
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

// IsExpected reports whether, for the unit's hooks, the member will be in the relation once the pending hook
// has run.
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

// Arrivals compares the members present in a relation with their recorded state, and returns the entries that
// change. These are members that came, members that are gone, and members whose settings are newer than the
// hooks have seen. leaving is true if the unit must leave the relation. Then all members count as gone. tail is
// the queue's next free place.
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
	var changed []member // sorted below, since there are fewer of them than members

	known := 0
	for _, m := range present {
		before, isKnown := recorded[m.Unit]
		if isKnown {
			known++
		}
		if now := (member{name: m.Unit, version: m.Version, in: true}); now.update(before, tail) != before {
			changed = append(changed, now)
		}
	}

	if known < len(recorded) {
		changed = append(changed, findGone(recorded, present, tail)...)
	}
	slices.SortFunc(changed, func(a, b member) int { return charm.CompareUnits(a.name, b.name) })
	var all []Arrival

	for _, m := range changed {
		before, isKnown := recorded[m.name]
		after := m.update(before, tail)
		if after.Place == tail {
			tail++
		}

		all = append(all, Arrival{
			Relation: relation,
			Member:   m.name,
			State:    after,
			Known:    isKnown,
			Forget:   IsForgotten(after),
		})
	}

	return all
}

// member is a unit or service that is in the relation, or was in it according to its recorded state.
type member struct {
	name    string
	version int64
	in      bool
}

// findGone returns the recorded members that are not present, unless their recorded state already shows that.
func findGone(recorded map[string]state.MemberState, present []state.Member, tail int64) (gone []member) {
	here := make(map[string]bool, len(present))
	for _, m := range present {
		here[m.Unit] = true
	}

	for name, before := range recorded {
		if m := (member{name: name}); !here[name] && m.update(before, tail) != before {
			gone = append(gone, m)
		}
	}

	return gone
}

// update returns the recorded state m after it was compared with the member.
func (now member) update(m state.MemberState, tail int64) state.MemberState {
	// A service has no joined and departed hooks. It is in the relation, or its entry is removed.
	if !IsUnit(now.name) {
		if !now.in {
			return state.MemberState{}
		}
		m.State = In
	}

	switch {
	case !now.in && IsExpected(m):
		return Arrive(m, Departed, tail)
	case now.in && !IsExpected(m):
		m.Version = now.version
		return Arrive(m, Joined, tail)
	case now.in && m.Pending == "" && now.version > max(m.Version, m.Seen):
		m.Version = now.version
		return Arrive(m, Changed, tail)
	}

	return m
}
