package decide

import (
	"maps"

	"bijou/agent/hook"
	"bijou/state"
)

// NextTogether is Next, but for arrivals that a hook follows: then that is next, and Queued of the
// snapshot that it returns has what is to be queued as the hook begins.
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

func (s Snapshot) withQueued(arrivals []hook.Arrival) Snapshot {
	s.Queued, s.Compared, s.Uniter.Members = arrivals, len(arrivals) < MaxArrivals, maps.Clone(s.Uniter.Members)
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
