package decide

import (
	"maps"
	"slices"

	"bijou/agent/hook"
	"bijou/state"
	"bijou/state/charm"
)

// MaxArrivals limits the entries of one [Enqueue]. It is far below the limits of one transaction.
const MaxArrivals = 50

// Members is a set of members of relations. A nil set contains all members of all relations.
type Members map[Member]bool

// Member identifies a member of a relation.
type Member struct {
	Relation int
	Name     string // the name of a unit, or of a service for its own settings
}

// Add adds a member to the set. A nil set already contains every member, and stays nil.
func (m Members) Add(one Member) {
	if m != nil {
		m[one] = true
	}
}

// newArrivals returns the members that have come, changed or gone, and are not yet recorded in the queue. It
// returns at most MaxArrivals of them. It returns nil until the unit's start hook has run.
func (s *Snapshot) newArrivals() []hook.Arrival {
	var all []hook.Arrival
	tail := s.Uniter.Workflow.NextPlace
	if !s.IsQueueOpen() {
		return nil
	}

	for _, id := range s.enteredRelations() {
		recorded, present := s.membersToCompare(id)
		if s.Uniter.Relations[id].State == state.RelationEnded || len(recorded)+len(present) == 0 {
			continue
		}

		some := hook.Arrivals(id, recorded, present, s.IsLeaving(id), tail)
		all = append(all, some...)
		tail = NextPlaceAfter(some, tail)
	}

	return all[:min(len(all), MaxArrivals)]
}

// IsQueueOpen reports whether the unit's start hook has run. Members arrive in the queue only after that.
func (s *Snapshot) IsQueueOpen() bool { return s.Uniter.Workflow.NextPlace >= firstPlace }

// membersToCompare returns the recorded state of a relation's members, and the members that are present. It
// leaves out members that have already been compared. So for one change in a relation with a thousand members
// it returns one member.
func (s *Snapshot) membersToCompare(id int) (recorded map[string]state.MemberState, present []state.Member) {
	if s.Uncompared == nil {
		return s.Uniter.Members[id], s.visibleMembers(id)
	}

	recorded = map[string]state.MemberState{}
	visible := s.visibleMembers(id)

	for m := range s.Uncompared {
		if m.Relation != id {
			continue
		}

		if is, ok := s.Uniter.Members[id][m.Name]; ok {
			recorded[m.Name] = is
		}
		i, in := slices.BinarySearchFunc(visible, m.Name, func(m state.Member, name string) int {
			return charm.CompareUnits(m.Unit, name)
		})
		if in {
			present = append(present, visible[i])
		}
	}

	return recorded, present
}

// visibleMembers returns the members for which hooks can run. Only the modern dialect has hooks for a
// service's own settings. For other charms it leaves out the remote service, which is the last member.
func (s *Snapshot) visibleMembers(id int) []state.Member {
	all := s.Relations[id].Members
	last := len(all) - 1
	if last >= 0 && s.Hooks.Dialect != charm.Modern && !hook.IsUnit(all[last].Unit) {
		return all[:last]
	}
	return all
}

// NextPlaceAfter returns the queue's next free place once the arrivals are in it. tail is the next free place
// before that.
func NextPlaceAfter(arrivals []hook.Arrival, tail int64) int64 {
	for _, a := range arrivals {
		tail = max(tail, a.State.Place+1)
	}
	return tail
}

// NextTogether is like [Next], but combines an Enqueue with the hook that follows it. It then returns the
// hook, and a snapshot whose Queued field holds the arrivals to record when the hook begins.
func NextTogether(s Snapshot) (Step, Snapshot) {
	next := Next(s)
	if e, ok := next.(Enqueue); ok {
		after := s.withQueued(e.Arrivals)
		if h, ok := Next(after).(RunHook); ok && h.From != FromCrash {
			return h, after
		}
	}

	return next, s
}

// withQueued returns the snapshot as it will be when the arrivals are recorded.
func (s Snapshot) withQueued(arrivals []hook.Arrival) Snapshot {
	s.Queued = arrivals
	s.Uniter.Members = maps.Clone(s.Uniter.Members)
	if len(arrivals) < MaxArrivals {
		s.Uncompared = Members{}
	}

	for i, a := range arrivals {
		if i == 0 || arrivals[i-1].Relation != a.Relation {
			s.Uniter.Members[a.Relation] = maps.Clone(s.Uniter.Members[a.Relation])
		}
		if s.Uniter.Members[a.Relation] == nil {
			s.Uniter.Members[a.Relation] = map[string]state.MemberState{}
		}
		s.Uniter.Members[a.Relation][a.Member] = a.State
		if a.Forget {
			delete(s.Uniter.Members[a.Relation], a.Member)
		}
	}

	s.Uniter.Workflow.NextPlace = NextPlaceAfter(arrivals, s.Uniter.Workflow.NextPlace)
	return s
}
