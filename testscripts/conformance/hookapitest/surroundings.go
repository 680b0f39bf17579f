package hookapitest

import (
	"maps"
	"slices"

	"bijou/hookenv/hookapi"
)

func surroundingsTests() []test {
	return []test{
		{"an endpoint is bound to the unit's address", networkKnown},
		{"an endpoint that the charm does not have is bound to nothing", networkUnknown},
		{"goals are the service's units and whom it is related to", goals},
		{"the version is set at once", version},
		{"no hook is an action", noAction},
	}
}

func networkKnown(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	for _, relation := range []int{hookapi.NoRelation, 0} {
		got, err := r.Network(s.ctx(), "db", relation)
		s.fails("Network", nil, err)
		s.same("ingress", []string{"10.0.3.7"}, got.Ingress)
		s.same("egress", []string{"10.0.3.7/32"}, got.Egress)
		if len(got.Interfaces) != 1 || len(got.Interfaces[0].Addresses) != 1 || got.Interfaces[0].Addresses[0].Value != "10.0.3.7" {
			s.Errorf("interfaces %+v", got.Interfaces)
		}
	}
	_, err := r.Network(s.ctx(), "db", 99)
	s.fails("Network in relation 99", hookapi.ErrRelationNotFound, err)
}

func networkUnknown(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	_, err := r.Network(s.ctx(), "nosuch", hookapi.NoRelation)
	s.fails("Network", hookapi.ErrUnknownBinding, err)
	names, err := r.Bindings(s.ctx())
	s.fails("Bindings", nil, err)
	if !slices.IsSorted(names) || !slices.Contains(names, "db") || slices.Contains(names, "nosuch") {
		s.Errorf("Bindings: %v", names)
	}
}

func goals(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	got, err := r.Goals(s.ctx())
	s.fails("Goals", nil, err)
	for _, unit := range []string{"wordpress/0", "wordpress/1"} {
		if got.Units[unit].Status == "" {
			s.Errorf("no goal %s among %v", unit, got.Units)
		}
	}
	s.same("relations", []string{"db", "website"}, slices.Sorted(maps.Keys(got.Relations)))
	s.same("mysql", hookapi.Goal{Status: "joined"}, hookapi.Goal{Status: got.Relations["db"]["mysql"].Status})
	if got.Relations["db"]["mysql/10"].Status == "" {
		s.Errorf("no goal mysql/10 among %v", got.Relations["db"])
	}
}

func version(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	s.fails("SetVersion", nil, r.SetVersion(s.ctx(), "6.4.1"))
}

func noAction(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	_, err := r.Action(s.ctx())
	s.fails("Action", hookapi.ErrNoAction, err)
	s.fails("SetResults", hookapi.ErrNoAction, r.SetResults(s.ctx(), nil))
	s.fails("FailAction", hookapi.ErrNoAction, r.FailAction(s.ctx(), "x"))
	s.fails("LogAction", hookapi.ErrNoAction, r.LogAction(s.ctx(), "x"))
}
