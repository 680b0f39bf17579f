package juju

import (
	"context"
	"errors"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
)

// hintByKind adds to an error the hint for the kind of the error, if there is one.
func hintByKind(err error) error {
	if replaced, ok := errors.AsType[*state.Replaced](err); ok {
		return hintReplaced(err, replaced)
	}

	switch {
	case errors.Is(err, home.ErrNoEnvironment):
		return console.Hint(err, noEnvironmentHint)
	case errors.Is(err, home.ErrBusy):
		return console.Hint(err, "wait until that process has finished, then run: juju models")
	case errors.Is(err, context.Canceled):
		return console.Hint(err, "the command was interrupted; look at juju status before you repeat it")
	case errors.Is(err, state.ErrAway):
		return console.Hint(
			err,
			"check that the model's store is reachable and not locked; look at juju status before you repeat a change",
		)
	case errors.Is(err, state.ErrMoved):
		return console.Hint(
			err,
			"a migration was interrupted: repeat juju migrate-state with that URL; on a different host, copy environment.yaml from the host where the migration began",
		)
	case errors.Is(err, state.ErrNoStore), errors.Is(err, state.ErrStoreGone):
		return console.Hint(err,
			"the model's store is gone; juju destroy-model --force removes the rest of the model")
	}

	return err
}

const noEnvironmentHint = "to create a model: juju bootstrap; to list the models: juju models"

// withHint adds hints to an error, as hintByKind does. If there is no environment at all, a hint also names the
// program for controllers of Canonical's Juju.
func (o *operator) withHint(err error) error {
	if !errors.Is(err, home.ErrNoEnvironment) {
		return hintByKind(err)
	}
	// If the environments cannot be listed, there may be none.
	if names, _ := o.home.Names(); len(names) > 0 {
		return hintByKind(err)
	}

	client := "Canonical's own client, whose files are in ~/.local/share/juju"
	if path := o.parts.OtherJuju(); path != "" {
		client = path
	}
	return console.Hint(err, noEnvironmentHint, "this juju is bijou's; for Canonical's controllers, use "+client)
}

// hintReplaced adds to the error the two ways to continue after a store was replaced while agents used it.
func hintReplaced(err error, r *state.Replaced) error {
	return console.Hint(err,
		"bijou no longer writes to that file, and its agents end; see docs/how-to/back-up.md, \"A state file that was replaced\"",
		"to restore a backup in its place: juju stop; juju restore --replace FILE",
		"to continue with the file's present content: juju stop; rm -f "+strings.Join(r.Remove, " ")+"; juju start")
}
