package hook

import (
	"slices"

	"bijou/state"
	"bijou/state/charm"
)

// Arrival is a member's new entry in the queue.
type Arrival struct {
	Relation int
	Member   string
	State    state.MemberState
	Forget   bool // the entry is to be removed
}

// Arrivals compares who is in a relation with what was recorded of it, and returns the
// entries that change: members that came, whose settings have a version that no hook was
// told of, or that are gone. leaving is true if the relation or the local unit goes: then
// everybody departs. tail is the next free place. A service among those present stands for
// its own settings: who is told of them hears of a change, and of no joined or departed.
func Arrivals(relation int, recorded map[string]state.MemberState, present []state.Member, leaving bool, tail int64) []Arrival {
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
		if now := (member{m.Unit, m.Version, true}); now.update(before, tail) != before {
			changed = append(changed, now)
		}
	}
	if known < len(recorded) {
		changed = append(changed, findGone(recorded, present, tail)...)
	}
	slices.SortFunc(changed, func(a, b member) int { return charm.CompareUnits(a.name, b.name) })
	var all []Arrival
	for _, m := range changed {
		after := m.update(recorded[m.name], tail)
		if after.Place == tail {
			tail++
		}
		all = append(all, Arrival{Relation: relation, Member: m.name, State: after, Forget: IsForgotten(after)})
	}
	return all
}

// member is one that is in the relation or, by what was recorded, was.
type member struct {
	name    string
	version int64
	in      bool
}

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

// update returns what is to be recorded of the member.
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
