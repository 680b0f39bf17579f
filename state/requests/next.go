package requests

import "bijou/state"

// Case is one request, with the current records of its unit and relation.
type Case struct {
	state.Request
	Unit     state.Life // life of the unit; empty if the unit is gone
	Related  state.Life // life of the relation; empty if the relation is gone, or the request does not have one
	IsMember bool       // whether the unit is in the relation
	Members  bool       // whether there are units in the relation
	Lacks    bool       // whether the relation requires a subordinate unit that the unit does not have
}

// Step is the leader's action for a request.
type Step string

// The steps are idempotent. All except Keep end with the removal of the request.
const (
	Keep           Step = "keep"   // this binary cannot carry out the request's kind, but another leader may be able to
	Forget         Step = "forget" // the request no longer has an effect
	RemoveUnit     Step = "remove unit"
	RemoveRelation Step = "remove relation" // also removes services that have waited for the relation's end
	AddSubordinate Step = "add subordinate"
)

// Next returns the step for a request. It relies on the records and not on the request, so that an agent
// cannot cause anything that does not follow from the records.
func Next(c Case) Step {
	switch {
	case c.Kind == state.RequestRemoval && c.Unit == state.Dead:
		return RemoveUnit
	case c.Kind == state.RequestRelationEnd && isGoing(c.Related) && !c.Members:
		return RemoveRelation
	case c.Kind == state.RequestSubordinate && c.Unit == state.Alive && c.Related == state.Alive && c.IsMember && c.Lacks:
		return AddSubordinate
	case c.Kind != state.RequestRemoval && c.Kind != state.RequestRelationEnd && c.Kind != state.RequestSubordinate:
		return Keep
	}

	return Forget
}

func isGoing(l state.Life) bool { return l == state.Dying || l == state.Dead }
