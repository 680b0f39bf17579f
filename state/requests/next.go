package requests

import "bijou/state"

// Case is one request, with what is there by now of what it is about.
type Case struct {
	state.Request
	Unit     state.Life // empty: the unit is gone
	Related  state.Life // of the relation; empty: it is gone, or the request is about none
	IsMember bool       // the unit is in the relation
	Members  bool       // there are units in the relation
	Lacks    bool       // the relation gives the unit a subordinate unit that it does not have
}

// Step is what the leader does about a request.
type Step string

// The steps. All but Keep end with the removal of the request, and are idempotent.
const (
	Keep           Step = "keep"   // it is of a kind that this binary does not know: another leader may
	Forget         Step = "forget" // nothing follows from it any more
	RemoveUnit     Step = "remove unit"
	RemoveRelation Step = "remove relation" // and services that have waited for its end
	AddSubordinate Step = "add subordinate"
)

// Next decides what is done about a request. It believes the records and not the request: an agent can
// ask for nothing that does not follow from them.
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
