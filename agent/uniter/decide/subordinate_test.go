package decide

import (
	"testing"

	"bijou/agent/hook"
	"bijou/state"
)

// subordinate makes the unit a subordinate of mysql/0, which relation 1 contains.
func subordinate(s *Snapshot) {
	s.Unit.Principal = "mysql/0"
	r := s.Relations[1]
	r.ToPrincipal = true
	s.Relations[1] = r
}

func TestNextSubordinate(t *testing.T) {
	checkAll(t, []nextCase{
		{"held", idle, func(s *Snapshot) { subordinate(s); s.StatusInterval = 0 }, Wait{}},
		{"the relation goes", idle, func(s *Snapshot) {
			subordinate(s)
			r := s.Relations[1]
			r.Life, r.Members = state.Dying, nil
			s.Relations[1] = r
			s.Uniter.Members = nil
		}, SetDying{}},
		{"other relations do not hold it", idle, func(s *Snapshot) { s.Unit.Principal = "haproxy/0" }, SetDying{}},
		{"in an error state, too", idle, func(s *Snapshot) {
			s.Unit.Principal = "haproxy/0"
			failing("configure-error", hook.ConfigChanged)(s)
		}, SetDying{}},
		{"dying already", idle, func(s *Snapshot) {
			s.Unit.Principal = "mysql/0"
			dying(s)
			s.Uniter.Relations, s.Uniter.Members, s.Relations = nil, nil, nil
		}, run(hook.Stop)},
		{"a principal waits for those that came with it", idle, func(s *Snapshot) {
			dying(s)
			s.Unit.Subordinates = []string{"logging/0"}
			s.Uniter.Relations, s.Uniter.Members, s.Relations = nil, nil, nil
		}, Wait{}},
	})
}
