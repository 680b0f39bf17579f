package requests

import (
	"testing"

	"bijou/state"
)

func TestNext(t *testing.T) {
	removal := state.Request{Unit: "app/0", Kind: state.RequestRemoval, Relation: state.NoRelation}
	end := state.Request{Unit: "app/0", Kind: state.RequestRelationEnd, Relation: 3}
	wants := state.Request{Unit: "app/0", Kind: state.RequestSubordinate, Relation: 3}

	for _, test := range []struct {
		name string
		is   Case
		want Step
	}{
		{"a unit that is dead", Case{Request: removal, Unit: state.Dead}, RemoveUnit},
		{"a unit that only says so", Case{Request: removal, Unit: state.Alive}, Forget},
		{"a unit that is still being taken down", Case{Request: removal, Unit: state.Dying}, Forget},
		{"a unit that is gone", Case{Request: removal}, Forget},

		{"a relation that has ended", Case{Request: end, Unit: state.Alive, Related: state.Dying}, RemoveRelation},
		{"a relation that has ended, asked for by a unit that is gone", Case{Request: end, Related: state.Dying}, RemoveRelation},
		{"a dead relation", Case{Request: end, Related: state.Dead}, RemoveRelation},
		{"a relation that others are in", Case{Request: end, Related: state.Dying, Members: true}, Forget},
		{"a relation that nobody ends", Case{Request: end, Related: state.Alive}, Forget},
		{"a relation that is gone", Case{Request: end}, Forget},

		{"a principal without its subordinate", Case{Request: wants, Unit: state.Alive, Related: state.Alive, IsMember: true, Lacks: true}, AddSubordinate},
		{"a principal that has one", Case{Request: wants, Unit: state.Alive, Related: state.Alive, IsMember: true}, Forget},
		{"a principal that has not entered", Case{Request: wants, Unit: state.Alive, Related: state.Alive, Lacks: true}, Forget},
		{"a principal that goes", Case{Request: wants, Unit: state.Dying, Related: state.Alive, IsMember: true, Lacks: true}, Forget},
		{"a principal whose relation goes", Case{Request: wants, Unit: state.Alive, Related: state.Dying, IsMember: true, Lacks: true}, Forget},
		{"a kind that this binary does not know", Case{Request: state.Request{Unit: "app/0", Kind: "other"}, Unit: state.Dead, Related: state.Dying}, Keep},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Next(test.is); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
