package uniter

import (
	"slices"

	"bijou/agent/hook"
)

// create has the unit hear of the relations that there are, in charms that want
// to: it enters each, and runs its relation-created. That comes before the first
// config-changed for relations that are there by then, as charms that have the
// hook rely on: in it they ask for what they need of the other side. Nil if there
// is none to hear of.
func (s *Snapshot) create() Step {
	for _, id := range s.peersLast() {
		r := s.Relations[id]
		rs, in := s.Uniter.Relations[id]
		switch {
		case s.leaving(id):
		case !in && s.Hooks.created(r.Name):
			return EnterRelation{r.Relation}
		case rs.CreatedOwed && rs.Failure == nil:
			return RunHook{hook.InRelation(hook.Created, r.Relation, ""), FromWorkflow}
		}
	}
	return nil
}

// peersLast lists all relations, ascending, those among peers after the others.
func (s *Snapshot) peersLast() []int {
	var peers []int
	ids := slices.DeleteFunc(sortedKeys(s.Relations), func(id int) bool {
		if s.Relations[id].Peer {
			peers = append(peers, id)
		}
		return s.Relations[id].Peer
	})
	return append(ids, peers...)
}
