package juju

import (
	"errors"
	"fmt"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
)

type integrateCmd struct {
	A string `arg:"" help:"APPLICATION or APPLICATION:RELATION."`
	B string `arg:"" optional:"" help:"APPLICATION or APPLICATION:RELATION."`
	waitFlags
}

// Run adds the relation and prints its endpoints.
func (c integrateCmd) Run(o *operator) error {
	if c.B == "" {
		return console.Hint(console.Usage(errors.New("no second application given")),
			"juju integrate "+quoteShellWords([]string{c.A})+" APPLICATION")
	}

	var added state.Relation
	err := o.update(func(tx *state.Tx) error {
		ends, err := tx.InferEndpoints(c.A, c.B)
		if err != nil {
			return err
		}
		added, err = tx.AddRelation(ends...)
		return err
	})
	// The same relation still exists, but is ending.
	if errors.Is(err, state.ErrExists) && errors.Is(err, state.ErrDead) {
		return console.Hint(err, "to wait for its end: juju remove-relation "+quoteShellWords([]string{c.A, c.B})+" --wait")
	}
	if err != nil {
		return err
	}

	fmt.Fprintf(o.streams.Out, "%s: %s\n", added, formatEndpoints(added))
	o.noteAffected(untilIdle, servicesOf(added)...) // --wait waits until their units are idle
	return nil
}

// formatEndpoints returns the relation's endpoints in one line.
func formatEndpoints(r state.Relation) string {
	var ends []string
	for _, e := range r.Endpoints {
		ends = append(ends, e.String())
	}
	return strings.Join(ends, " ")
}
