package decide

import (
	"slices"

	"bijou/agent/hook"
)

// nextRelationCreated has charms with a relation-created hook enter their relations, and
// runs the hook in each. It comes before the first config-changed for relations that exist
// by then, as such charms rely on: in the hook they ask for what they need of the other
// side.
func (s *Snapshot) nextRelationCreated() Step {
	for _, id := range s.peersLast() {
		r := s.Relations[id]
		rs, in := s.Uniter.Relations[id]
		switch {
		case s.IsLeaving(id):
		case !in && s.Hooks.HasCreated(r.Name):
			return EnterRelation{r.Relation}
		case rs.CreatedOwed && rs.Failure == nil:
			return RunHook{hook.ForRelation(hook.Created, r.Relation, ""), FromWorkflow}
		}
	}
	return nil
}

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
