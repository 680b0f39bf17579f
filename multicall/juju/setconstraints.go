package juju

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
)

type setConstraintsCmd struct {
	Values  []string `arg:"" optional:"" name:"key=value" help:"The new constraints; without any, all are removed. A first word without \"=\" names an application."`
	Service string   `placeholder:"APPLICATION" help:"Set the constraints of this application, instead of the model's."`
}

// Run replaces the constraints of the environment or, if an application is given, of that service.
func (c setConstraintsCmd) Run(o *operator) error {
	words := c.Values
	startsWithName := len(words) > 0 && words[0] != "" && !strings.ContainsAny(words[0], "= ")
	if startsWithName {
		// set-model-constraints never concerns an application.
		if c.Service != "" || slices.Contains(o.args, "set-model-constraints") {
			return console.Usage(fmt.Errorf("cannot set constraints: want KEY=VALUE, got %q", c.Values[0]))
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
		// The only word is not a service, so return the error for an invalid constraint.
		_, err = parseConstraints(words...)
	}
	if err != nil {
		return err
	}

	owner := cmp.Or(c.Service, "the model")
	shown := v.String()
	if shown == "" {
		shown = "none"
	}
	o.note("constraints of %s are now %s; they apply to machines added later", owner, shown)
	return nil
}
