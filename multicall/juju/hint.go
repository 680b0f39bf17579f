package juju

import (
	"context"
	"errors"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
)

// withHint adds to an error the hint for its kind, if there is one.
func withHint(err error) error {
	if replaced, ok := errors.AsType[*state.Replaced](err); ok {
		return hintReplaced(err, replaced)
	}

	switch {
	case errors.Is(err, home.ErrNoEnvironment):
		return console.Hint(err, noEnvironmentHint)
	case errors.Is(err, home.ErrBusy):
		return console.Hint(err, "wait until it has finished, then look at: juju environments")
	case errors.Is(err, context.Canceled):
		return console.Hint(err, "it was interrupted; look at juju status before you repeat it")
	case errors.Is(err, state.ErrAway):
		return console.Hint(
			err,
			"see that the environment's store can be reached and nobody keeps it locked; look at juju status before you repeat a change",
		)
	case errors.Is(err, state.ErrMoved):
		return console.Hint(
			err,
			"a migration was cut off: repeat juju migrate-state with that URL; elsewhere than where it began, take environment.yaml from there",
		)
	case errors.Is(err, state.ErrNoStore), errors.Is(err, state.ErrStoreGone):
		return console.Hint(err,
			"the environment's store is gone; juju destroy-environment --force removes what is left")
	}

	return err
}

const noEnvironmentHint = "juju bootstrap makes one; juju environments lists those there are"

// withHint adds hints to an error. It also tells an operator who has no environment at all where
// controllers of Canonical's are.
func (o *operator) withHint(err error) error {
	if !errors.Is(err, home.ErrNoEnvironment) {
		return withHint(err)
	}
	if names, _ := o.home.Names(); len(names) > 0 {
		return withHint(err)
	}

	real := "its own client, in ~/.local/share/juju"
	if path := o.parts.OtherJuju(); path != "" {
		real = path
	}
	return console.Hint(err, noEnvironmentHint, "this juju is bijou's; controllers of Canonical's are known to "+real)
}

// hintReplaced adds to the error the two ways to continue after a store was replaced while agents used it.
func hintReplaced(err error, r *state.Replaced) error {
	return console.Hint(err,
		"nothing is written any more and its agents end; see docs/how-to/back-up.md, \"A state file that was replaced\"",
		"to put a backup in its place: juju stop; juju restore --replace FILE",
		"to go on with what the file holds now: juju stop; rm -f "+strings.Join(r.Remove, " ")+"; juju start")
}
