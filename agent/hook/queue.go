package hook

import (
	"slices"

	"bijou/state"
	"bijou/state/charm"
)

// A member's recorded state (state.MemberState.State) is what its hooks have been told of it, the
// entry being executed included: nothing, that it is in, or that it has left.
const (
	In   = "in"
	Left = "left"
)

// Arrive adds a hook of that kind to a member's entry. The entry goes to the tail, unless the hook adds
// nothing to it. The table is in docs/reference/hooks.md, "The queue". A hook that was taken out to run is
// no longer in the entry, so that nothing cancels it.
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

// Take returns the member's state once its pending hook is executed. After a joined, a changed is owed in the
// same place, whether or not the joined succeeds.
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

// Done records that a changed hook for the member counts as done, which knew its settings
// up to the given version. A pending changed that has nothing newer to tell is dropped.
func Done(m state.MemberState, seen int64) state.MemberState {
	m.Seen = max(m.Seen, seen)
	if m.Pending == Changed && m.Version <= m.Seen {
		m.Pending = ""
		m.Place = 0
	}
	return m
}

// IsForgotten reports whether nothing is left to be remembered of the member.
func IsForgotten(m state.MemberState) bool { return m.State != In && m.Pending == "" }

// IsExpected reports whether the member is in, as far as its hooks know once the pending one has run.
func IsExpected(m state.MemberState) bool {
	switch m.Pending {
	case Joined, Changed:
		return true
	case Departed:
		return false
	}

	return m.State == In
}

// isChangedOwed reports whether the pending hook is the changed that directly follows a joined.
func isChangedOwed(m state.MemberState) bool {
	return m.State == In && m.Pending == Changed && m.Seen == 0
}

// Arrival is a member's new entry in the queue.
type Arrival struct {
	Relation int
	Member   string
	State    state.MemberState
	Known    bool // there is an entry
	Forget   bool // the entry is to be removed
}

// Arrivals compares the members present in a relation with their recorded state, and returns the entries
// that change. These are members that came, members that are gone, and members whose settings are newer
// than the hooks have seen. If leaving is true, because the relation or the local unit goes, all members
// count as gone. tail is the next free place.
//
// A service among those present stands for its own settings, for which there is a changed hook but no
// joined or departed.
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
	var changed []member // few: only these are worth sorting

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

// member is one that is in the relation or, by what was recorded, was.
type member struct {
	name    string
	version int64
	in      bool
}

// findGone returns the recorded members that have left, except those that already know it.
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

// update returns the member's new record.
func (now member) update(m state.MemberState, tail int64) state.MemberState {
	switch service := !IsUnit(now.name); {
	case service && !now.in:
		return state.MemberState{}
	case service:
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
