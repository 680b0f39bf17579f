package juju

import (
	"fmt"
	"strings"

	"bijou/state"
)

type addRelationCmd struct {
	A string `arg:"" help:"SERVICE or SERVICE:RELATION."`
	B string `arg:"" help:"SERVICE or SERVICE:RELATION."`
	waitFlags
}

// Run adds the relation and prints its endpoints.
func (c addRelationCmd) Run(o *operator) error {
	var added state.Relation
	err := o.update(func(tx *state.Tx) error {
		ends, err := tx.InferEndpoints(c.A, c.B)
		if err != nil {
			return err
		}
		added, err = tx.AddRelation(ends...)
		return err
	})
	if err != nil {
		return err
	}

	fmt.Fprintf(o.streams.Out, "%s: %s\n", added, formatEndpoints(added))
	o.noteAffected(untilIdle, servicesOf(added)...)
	return nil
}

func formatEndpoints(r state.Relation) string {
	var ends []string
	for _, e := range r.Endpoints {
		ends = append(ends, e.String())
	}
	return strings.Join(ends, " ")
}
