package hookapitest

import (
	"slices"

	"bijou/hookenv/hookapi"
)

func relationTests() []test {
	return []test{
		{"facts are those the hook was started with", factsStay},
		{"a relation names both ends, the provider first", relationEnds},
		{"an unknown relation is not found", unknownRelation},
		{"the implied relation has the members of the facts, the local unit and its peers", impliedMembers},
		{"another relation's members are fixed at its first reference", membersFixed},
		{"relation ids of the local unit, ascending", idsOfUnit},
		{"relation ids of a unit are those it has entered", idsOfEntered},
		{"relation ids stay fixed after the first call", idsFixed},
		{"relation ids of an unknown unit", idsOfUnknown},
		{"a relation that vanished stays as it was read", vanishedStays},
	}
}

func factsStay(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	s.same("Facts", dbChanged(), r.Facts())
}

func relationEnds(s suite) {
	r := s.env.Start(plain("wordpress/0", "wordpress"))
	defer r.Abort()
	got, err := r.Relation(s.ctx(), 0)
	s.fails("Relation(0)", nil, err)
	s.same("Relation(0)", standardDB().Relation, got)
	got, err = r.Relation(s.ctx(), 2)
	s.fails("Relation(2)", nil, err)
	s.same("Relation(2)", standardPeer().Relation, got)
}

func unknownRelation(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	_, err := r.Relation(s.ctx(), 9)
	s.fails("Relation(9)", hookapi.ErrRelationNotFound, err)
	_, err = r.Settings(s.ctx(), hookapi.Node{Relation: 9, Unit: "wordpress/0"})
	s.fails("Settings in relation 9", hookapi.ErrRelationNotFound, err)
}

func impliedMembers(s suite) {
	facts := dbChanged()
	facts.Members = []string{"mysql/0"}
	r := s.env.Start(facts)
	defer r.Abort()
	got, err := r.Relation(s.ctx(), 0)
	s.fails("Relation(0)", nil, err)
	s.same("members", []string{"mysql/0"}, got.Ends[0].Units)
	s.same("own end", []string{"wordpress/0", "wordpress/1"}, got.Ends[1].Units)
	r.Abort()
	facts.Broken, facts.Members = true, nil
	broken := s.env.Start(facts)
	defer broken.Abort()
	got, err = broken.Relation(s.ctx(), 0)
	s.fails("Relation(0)", nil, err)
	s.same("own end when broken", []string{"wordpress/0"}, got.Ends[1].Units)
}

func membersFixed(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	_, err := r.Relation(s.ctx(), 1)
	s.fails("Relation(1)", nil, err)
	s.env.Leave(1, "haproxy/0")
	got, err := r.Relation(s.ctx(), 1)
	s.fails("Relation(1) again", nil, err)
	s.same("members", []string{"haproxy/0"}, got.Ends[1].Units)
}

func idsOfUnit(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	got, err := r.RelationIDs(s.ctx(), "wordpress/0")
	s.fails("RelationIDs", nil, err)
	s.same("RelationIDs", []int{0, 1, 2}, got)
}

func idsOfEntered(s suite) {
	s.env.Leave(1, "wordpress/0")
	r := s.env.Start(dbChanged())
	defer r.Abort()
	got, err := r.RelationIDs(s.ctx(), "wordpress/0")
	s.fails("RelationIDs", nil, err)
	s.same("relations that wordpress/0 is in", []int{0, 2}, got)
	got, err = r.RelationIDs(s.ctx(), "wordpress")
	s.fails("RelationIDs of the service", nil, err)
	s.same("relations of the service", []int{0, 1, 2}, got)
}

func idsFixed(s suite) {
	r := s.env.Start(plain("wordpress/0", "wordpress"))
	defer r.Abort()
	_, err := r.RelationIDs(s.ctx(), "wordpress/0")
	s.fails("RelationIDs", nil, err)
	s.env.RemoveRelation(1)
	got, err := r.RelationIDs(s.ctx(), "wordpress/0")
	s.fails("RelationIDs again", nil, err)
	if !slices.Contains(got, 1) {
		s.Errorf("relation 1 vanished from the hook's view: %v", got)
	}
}

func idsOfUnknown(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	for _, name := range []string{"foo/9", "mysql/99", "foo"} {
		_, err := r.RelationIDs(s.ctx(), name)
		s.fails("RelationIDs of "+name, hookapi.ErrUnknownUnit, err)
	}
}

func vanishedStays(s suite) {
	r := s.env.Start(plain("wordpress/0", "wordpress"))
	defer r.Abort()
	before, err := r.Relation(s.ctx(), 1)
	s.fails("Relation(1)", nil, err)
	node := hookapi.Node{Relation: 1, Unit: "haproxy/0"}
	s.same("settings", map[string]string{"private-address": "10.0.3.20"}, s.node(r, node))
	s.env.RemoveRelation(1)
	after, err := r.Relation(s.ctx(), 1)
	s.fails("Relation(1) after its removal", nil, err)
	s.same("Relation(1) after its removal", before, after)
	s.same("settings after its removal", map[string]string{"private-address": "10.0.3.20"}, s.node(r, node))
}
