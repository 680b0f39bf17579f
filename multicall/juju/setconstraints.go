package juju

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
)

type setConstraintsCmd struct {
	Values  []string `arg:"" optional:"" name:"key=value" help:"All constraints there are to be; none: no constraints. A first word without \"=\" names a service."`
	Service string   `placeholder:"SERVICE" help:"Of this service, instead of the environment."`
}

// Run replaces the constraints.
func (c setConstraintsCmd) Run(o *operator) error {
	words := c.Values
	if len(c.Values) > 0 && c.Values[0] != "" && !strings.ContainsAny(c.Values[0], "= ") {
		if c.Service != "" || slices.Contains(o.args, "set-model-constraints") {
			return console.Usage(errors.New("cannot set constraints: two names given, want KEY=VALUE behind the first"))
		}
		c.Service = c.Values[0]
		c.Values = c.Values[1:]
	}

	v, err := parseConstraints(c.Values...)
	if err != nil {
		return err
	}

	err = o.update(func(tx *state.Tx) error {
		if c.Service == "" {
			return tx.SetConstraints(v)
		}
		return tx.SetServiceConstraints(c.Service, v)
	})
	if errors.Is(err, state.ErrNotFound) && len(words) == 1 && words[0] == c.Service {
		_, err = parseConstraints(words...) // neither a service nor a constraint
	}
	if err != nil {
		return err
	}

	of := cmp.Or(c.Service, "the environment")
	shown := v.String()
	if shown == "" {
		shown = "none"
	}
	o.note("constraints of %s are %s; they are for machines to come", of, shown)
	return nil
}
