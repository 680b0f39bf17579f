package hook

import (
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
	here := make(map[string]int64, len(present))
	var changed []string // few: only these are worth sorting
	for _, m := range present {
		here[m.Unit] = m.Version
		if before := recorded[m.Unit]; updateEntry(m.Unit, before, true, m.Version, tail) != before {
			changed = append(changed, m.Unit)
		}
	}
	for name, before := range recorded {
		if _, in := here[name]; !in && updateEntry(name, before, false, 0, tail) != before {
			changed = append(changed, name)
		}
	}
	charm.SortUnits(changed)
	var all []Arrival
	for _, name := range changed {
		version, in := here[name]
		after := updateEntry(name, recorded[name], in, version, tail)
		if after.Place == tail {
			tail++
		}
		all = append(all, Arrival{Relation: relation, Member: name, State: after, Forget: IsForgotten(after)})
	}
	return all
}

func updateEntry(name string, m state.MemberState, in bool, version, tail int64) state.MemberState {
	switch service := !IsUnit(name); {
	case service && !in:
		return state.MemberState{}
	case service:
		m.State = In
	}
	switch {
	case !in && IsExpected(m):
		return Arrive(m, Departed, tail)
	case in && !IsExpected(m):
		m.Version = version
		return Arrive(m, Joined, tail)
	case in && m.Pending == "" && version > max(m.Version, m.Seen):
		m.Version = version
		return Arrive(m, Changed, tail)
	}
	return m
}
