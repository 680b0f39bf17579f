package requests

import "bijou/state"

// Case is one request, with the current records of its unit and relation.
type Case struct {
	state.Request
	Unit     state.Life // life of the unit; empty if the unit is gone
	Related  state.Life // life of the relation; empty if the relation is gone, or the request concerns no relation
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

// Next returns the step for a request. The request alone has no effect: the records must show that its step is
// due, so that an agent can cause only changes that follow from the records.
func Next(c Case) Step {
	switch c.Kind {
	case state.RequestRemoval:
		if c.Unit == state.Dead {
			return RemoveUnit
		}

	case state.RequestRelationEnd:
		if isEnding(c.Related) && !c.Members {
			return RemoveRelation
		}

	case state.RequestSubordinate:
		areAlive := c.Unit == state.Alive && c.Related == state.Alive
		if areAlive && c.IsMember && c.Lacks {
			return AddSubordinate
		}

	default:
		// A newer binary has added this kind of request. Another leader may know it.
		return Keep
	}

	return Forget
}

// isEnding reports whether an entity exists and is dying or dead.
func isEnding(l state.Life) bool { return l == state.Dying || l == state.Dead }
