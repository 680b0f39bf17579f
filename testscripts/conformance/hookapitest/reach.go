package hookapitest

import "bijou/hookenv/hookapi"

// reachTests returns the tests of relation 3, which connects mysql and backup. The hooks are those of
// wordpress, which is not in this relation.
func reachTests() []test {
	return []test{
		{"settings in a relation of others are read and written by no hook, in no dialect", foreignSettings},
		{"a classic hook sees who is in a relation of others", walkClassic},
		{"a modern hook sees only relations that its service is in", walkModern},
		{"an operator reaches everything", operatorReach},
		{"a service's own settings are its leader's to read", ownServiceRead},
		{"a service's own settings in a peer relation are for all its units", peerServiceRead},
		{"an endpoint's network is not told by a relation of others", foreignNetwork},
	}
}

func dialects() []hookapi.Dialect { return []hookapi.Dialect{hookapi.Classic, hookapi.Modern} }

func in(f hookapi.Facts, d hookapi.Dialect) hookapi.Facts {
	f.Dialect = d
	return f
}

func foreignSettings(s suite) {
	s.env.Lead("wordpress", "wordpress/0")

	for _, dialect := range dialects() {
		for _, facts := range []hookapi.Facts{dbChanged(), plain("wordpress/0", "wordpress")} {
			r := s.env.Start(in(facts, dialect))
			for _, node := range []hookapi.Node{
				{Relation: 3, Unit: "backup/0"}, {Relation: 3, Unit: "mysql/0"}, {Relation: 3, Unit: "wordpress/0"},
				{Relation: 3, Service: "backup"}, {Relation: 3, Service: "wordpress"},
			} {
				_, err := r.Settings(s.ctx(), node)
				s.fails("Settings", hookapi.ErrRelationNotFound, err)
				err = r.SetSettings(s.ctx(), node, to("a", "1"))
				s.fails("SetSettings", hookapi.ErrRelationNotFound, err)
			}
			s.commit(r)
		}
	}

	owner := s.env.Start(plain("backup/0", "backup"))
	defer owner.Abort()
	s.same("settings", map[string]string{"path": "/srv"}, s.node(owner, hookapi.Node{Relation: 3, Unit: "backup/0"}))
}

func walkClassic(s suite) {
	r := s.env.Start(in(dbChanged(), hookapi.Classic))
	defer r.Abort()

	got, err := r.Relation(s.ctx(), 3)
	s.fails("Relation(3)", nil, err)
	s.same("Relation(3)", standardBackup().Relation, got)

	for name, want := range map[string][]int{"mysql/0": {0, 3}, "mysql": {0, 3}, "backup": {3}, "haproxy/0": {1}} {
		got, err := r.RelationIDs(s.ctx(), name)
		s.fails("RelationIDs of "+name, nil, err)
		s.same("RelationIDs of "+name, want, got)
	}
}

func walkModern(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()

	_, err := r.Relation(s.ctx(), 3)
	s.fails("Relation(3)", hookapi.ErrRelationNotFound, err)

	for name, want := range map[string][]int{"mysql/0": {0}, "mysql": {0}, "backup": {}, "haproxy/0": {1}, "wordpress": {0, 1, 2}} {
		got, err := r.RelationIDs(s.ctx(), name)
		s.fails("RelationIDs of "+name, nil, err)
		s.same("RelationIDs of "+name, want, got)
	}
}

func operatorReach(s suite) {
	theirs := hookapi.Node{Relation: 3, Unit: "backup/0"}
	asUnit := plain("wordpress/0", "wordpress")
	asNobody := hookapi.Facts{Relation: hookapi.NoRelation}

	for _, facts := range []hookapi.Facts{asUnit, asNobody} {
		for _, dialect := range dialects() {
			facts.Operator = true
			r := s.env.Start(in(facts, dialect))
			_, err := r.Relation(s.ctx(), 3)
			s.fails("Relation(3)", nil, err)
			ids, err := r.RelationIDs(s.ctx(), "backup/0")
			s.fails("RelationIDs", nil, err)
			s.same("RelationIDs", []int{3}, ids)
			s.set(r, theirs, to("by", string(dialect)))
			s.same("settings", map[string]string{"path": "/srv", "by": string(dialect)}, s.node(r, theirs))
			s.same("own of the service", map[string]string{"mine": "yes"}, s.node(r, hookapi.Node{Relation: 0, Service: "wordpress"}))
			r.Abort()
		}
	}
}

func ownServiceRead(s suite) {
	mine := hookapi.Node{Relation: 0, Service: "wordpress"}
	s.env.Lead("wordpress", "wordpress/1")

	for _, dialect := range dialects() {
		r := s.env.Start(in(dbChanged(), dialect))
		_, err := r.Settings(s.ctx(), mine)
		s.fails("Settings of the own service", hookapi.ErrNotLeader, err)
		s.fails("SetSettings", hookapi.ErrNotLeader, r.SetSettings(s.ctx(), mine, to("a", "1")))
		s.same("of mysql", map[string]string{"app": "data"}, s.node(r, hookapi.Node{Relation: 0, Service: "mysql"}))
		s.commit(r)
	}

	s.env.Lead("wordpress", "wordpress/0")
	leader := s.env.Start(dbChanged())
	s.same("of the leader's service", map[string]string{"mine": "yes"}, s.node(leader, mine))
	s.env.Lead("wordpress", "wordpress/1")
	// The hook has read and not written.
	s.commit(leader)
}

func peerServiceRead(s suite) {
	told := hookapi.Node{Relation: 2, Service: "wordpress"}
	s.env.Lead("wordpress", "wordpress/1")
	s.env.Change(told, to("turn", "wordpress/0"))

	for _, dialect := range dialects() {
		r := s.env.Start(in(dbChanged(), dialect))
		s.same("told by the leader", map[string]string{"turn": "wordpress/0"}, s.node(r, told))
		r.Abort()
	}
}

func foreignNetwork(s suite) {
	for _, dialect := range dialects() {
		r := s.env.Start(in(dbChanged(), dialect))
		_, err := r.Network(s.ctx(), "db", 0)
		s.fails("Network in relation 0", nil, err)
		_, err = r.Network(s.ctx(), "db", 3)
		s.fails("Network in relation 3", hookapi.ErrRelationNotFound, err)
		r.Abort()
	}
}
