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

// newArrivals returns the arrivals of members that have come, changed or gone, and are not yet recorded in
// the queue. It returns at most MaxArrivals. Once they are recorded, the next call returns the others. Relations
// whose last hook has run have no arrivals. newArrivals returns nil until the unit's start hook has run.
func (s *Snapshot) newArrivals() []hook.Arrival {
	if !s.IsQueueOpen() {
		return nil
	}

	var arrivals []hook.Arrival
	tail := s.Uniter.Workflow.NextPlace
	for _, id := range s.enteredRelations() {
		recorded, present := s.membersToCompare(id)
		hasEnded := s.Uniter.Relations[id].State == state.RelationEnded
		if hasEnded || len(recorded)+len(present) == 0 {
			continue
		}

		ofRelation := hook.Arrivals(id, recorded, present, s.IsLeaving(id), tail)
		arrivals = append(arrivals, ofRelation...)
		tail = NextPlaceAfter(ofRelation, tail)
	}

	return arrivals[:min(len(arrivals), MaxArrivals)]
}

// IsQueueOpen reports whether the unit's start hook has run. Members arrive in the queue only after that.
func (s *Snapshot) IsQueueOpen() bool { return s.Uniter.Workflow.NextPlace >= firstPlace }

// membersToCompare returns the recorded state of a relation's members, and the visible members that are present.
// It leaves out members that have already been compared. So if one of a thousand members has changed, it returns
// only that member.
func (s *Snapshot) membersToCompare(id int) (recorded map[string]state.MemberState, present []state.Member) {
	if s.Uncompared == nil {
		return s.Uniter.Members[id], s.visibleMembers(id)
	}

	recorded = map[string]state.MemberState{}
	visible := s.visibleMembers(id) // sorted, as Relation.Members is
	for member := range s.Uncompared {
		if member.Relation != id {
			continue
		}

		if memberState, ok := s.Uniter.Members[id][member.Name]; ok {
			recorded[member.Name] = memberState
		}
		i, isPresent := slices.BinarySearchFunc(visible, member.Name, func(m state.Member, name string) int {
			return charm.CompareUnits(m.Unit, name)
		})
		if isPresent {
			present = append(present, visible[i])
		}
	}

	return recorded, present
}

// visibleMembers returns the members of a relation for which hooks can run. Only the modern dialect has hooks
// for a service's own settings. For other charms visibleMembers leaves out the remote service, which is the
// last member.
func (s *Snapshot) visibleMembers(id int) []state.Member {
	members := s.Relations[id].Members
	if len(members) == 0 || s.Hooks.Dialect == charm.Modern {
		return members
	}

	last := len(members) - 1
	if !hook.IsUnit(members[last].Unit) {
		return members[:last]
	}
	return members
}

// NextPlaceAfter returns the queue's next free place once the arrivals are in the queue. tail is the next
// free place before that.
func NextPlaceAfter(arrivals []hook.Arrival, tail int64) int64 {
	for _, a := range arrivals {
		tail = max(tail, a.State.Place+1)
	}
	return tail
}

// NextTogether is like [Next], but combines an Enqueue with the hook that follows it. It then returns the
// hook, and a snapshot whose Queued field holds the arrivals to record when the hook begins. It does not combine
// an Enqueue with a hook that runs again after a crash. In all other cases it returns the step of Next and s.
func NextTogether(s Snapshot) (Step, Snapshot) {
	next := Next(s)
	enqueue, ok := next.(Enqueue)
	if !ok {
		return next, s
	}

	after := s.withQueued(enqueue.Arrivals)
	following, ok := Next(after).(RunHook)
	if !ok || following.From == FromCrash {
		return next, s
	}
	return following, after
}

// withQueued returns the snapshot as it will be once the result of newArrivals is recorded. It does not change
// the maps of the original snapshot.
func (s Snapshot) withQueued(arrivals []hook.Arrival) Snapshot {
	s.Queued = arrivals
	s.Uniter.Members = maps.Clone(s.Uniter.Members)
	if len(arrivals) < MaxArrivals {
		s.Uncompared = Members{} // newArrivals has left no arrivals out, so no member is left to compare
	}

	// The arrivals of a relation follow each other. Clone the relation's map before the first of them changes it.
	for i, a := range arrivals {
		isFirstOfRelation := i == 0 || arrivals[i-1].Relation != a.Relation
		if isFirstOfRelation {
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
