package juju

import (
	"errors"
	"fmt"

	"bijou/state"
)

// resolvedCmd is `juju resolved`.
type resolvedCmd struct {
	Unit     string `arg:"" help:"The unit."`
	Relation string `arg:"" optional:"" help:"One relation of it, by name or id."`
	Retry    bool   `short:"r" help:"Run the failed hook again, instead of counting it as done."`
}

// Help shows how it is used.
func (resolvedCmd) Help() string {
	return `The failed hook counts as done and the unit goes on; with --retry it is run again first.

Examples:
  juju resolved mysql/0
  juju resolved --retry wordpress/0
  juju resolved --retry wordpress/0 db`
}

// Run marks the error as resolved. What needs no resolving is said, and no error.
func (c resolvedCmd) Run(o *operator) error {
	err := o.update(func(tx *state.Tx) error {
		if _, err := tx.Unit(c.Unit); err != nil {
			return err
		}
		return c.mark(tx)
	})
	what := fmt.Sprintf("unit %q", c.Unit)
	if c.Relation != "" {
		what = fmt.Sprintf("relation %q of %s", c.Relation, what)
	}
	switch {
	case errors.Is(err, state.ErrNotInError):
		fmt.Fprintf(o.streams.Out, "%s is already running\n", what)
		return nil
	case errors.Is(err, state.ErrAlreadyResolved):
		fmt.Fprintf(o.streams.Out, "%s is already marked as resolved\n", what)
		return nil
	case err != nil:
		return err
	}
	fmt.Fprintf(o.streams.Out, "%s is marked as resolved\n", what)
	return nil
}

// errRelationNotFound is the text of spec/hooks.md.
var errRelationNotFound = errors.New("Relation not found")

// mark writes the mark; the unit exists.
func (c resolvedCmd) mark(tx *state.Tx) error {
	err := tx.SetResolved(c.Unit, c.Relation, c.Retry)
	if c.Relation != "" && errors.Is(err, state.ErrNotFound) {
		return errRelationNotFound
	}
	return err
}
