package juju

import (
	"fmt"
	"strconv"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/status"
)

type removeRelationCmd struct {
	A string `arg:"" help:"APPLICATION, APPLICATION:RELATION, or the relation's id."`
	B string `arg:"" optional:"" help:"APPLICATION or APPLICATION:RELATION; not with an id."`

	Force bool `help:"Remove the relation at once; units with a live agent still run their last hooks for it."`
	waitFlags
}

// Run marks the relation as dying, and prints the errors that keep units in the relation. With --force it
// removes the relation at once, and prints no such errors.
func (c removeRelationCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		var r state.Relation
		err := s.Update(o.ctx, func(tx *state.Tx) (err error) {
			r, err = c.find(tx)
			if err != nil {
				return err
			}
			return tx.DestroyRelation(r.ID)
		})
		if err != nil {
			return err
		}

		o.note("%s is being removed: %s", r, formatEndpoints(r))
		o.noteAffected(untilIdle, servicesOf(r)...)
		if !c.Force {
			o.noteErrors(s, servicesOf(r), func(_ string, u status.Unit, relation string) bool {
				return holdsRelation(u, relation, r.ID)
			})
			return nil
		}

		// A relation without members is already gone.
		return state.IgnoreNotFound(s.ForceDestroyRelation(o.ctx, r.ID))
	})
}

// holdsRelation reports whether an error of the unit keeps it in the relation with the given id. inError is the
// relation in which the error occurred, or "" for an error of the unit itself.
func holdsRelation(u status.Unit, inError string, id int) bool {
	name := state.Relation{ID: id}.String()
	for _, group := range u.Relations {
		// A unit that has not entered the relation has no last hooks to run.
		if r, in := group.Relations[name]; in && r.State != state.RelationStart {
			return inError == "" || inError == name
		}
	}

	return false
}

// find returns the relation between the two services of the arguments, or the relation whose id is the only
// argument.
func (c removeRelationCmd) find(tx *state.Tx) (state.Relation, error) {
	if c.B != "" {
		return tx.FindRelation(c.A, c.B)
	}

	id, err := strconv.Atoi(strings.TrimPrefix(c.A, "relation-"))
	if err != nil {
		return state.Relation{}, console.Usage(fmt.Errorf(
			"%q is not a relation's id: give an id, or two applications",
			c.A,
		))
	}

	return tx.Relation(id)
}
