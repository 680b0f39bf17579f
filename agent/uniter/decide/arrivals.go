package decide

import (
	"maps"
	"slices"

	"bijou/agent/hook"
	"bijou/state"
	"bijou/state/charm"
)

// MaxArrivals bounds the entries of one Enqueue, well below the limits of one transaction.
const MaxArrivals = 50

// Members names members of relations. Nil is all of them.
type Members map[Member]bool

// Member is one of a relation.
type Member struct {
	Relation int
	Name     string
}

// Add adds one, if not all are in it.
func (m Members) Add(one Member) {
	if m != nil {
		m[one] = true
	}
}

// newArrivals returns the next members that the queue must note as arrived, changed or gone; at most
// MaxArrivals. It returns nil before the unit's start hook. Members that came earlier arrive after it.
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

// IsQueueOpen reports whether members arrive in the queue yet.
func (s *Snapshot) IsQueueOpen() bool { return s.Uniter.Workflow.NextPlace >= firstPlace }

// membersToCompare returns the recorded state of a relation's members, and the members that are present. It
// leaves out members that were compared already: one change in a relation of a thousand members returns
// one.
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

// visibleMembers returns the members that hooks can hear of. It leaves out the remote service's own
// settings, which are last, unless the charm has the modern dialect.
func (s *Snapshot) visibleMembers(id int) []state.Member {
	all := s.Relations[id].Members
	last := len(all) - 1
	if last >= 0 && s.Hooks.Dialect != charm.Modern && !hook.IsUnit(all[last].Unit) {
		return all[:last]
	}
	return all
}

// NextPlaceAfter returns where the queue goes on behind the arrivals.
func NextPlaceAfter(arrivals []hook.Arrival, tail int64) int64 {
	for _, a := range arrivals {
		tail = max(tail, a.State.Place+1)
	}
	return tail
}

// NextTogether is like [Next], but joins arrivals with the hook that follows them. It returns that hook,
// and a snapshot whose Queued holds the arrivals to record as the hook begins.
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
