package juju

import (
	"context"
	"errors"
	"time"

	"bijou/state"
)

// cancelTimeout is longer than an agent takes to kill what it was told to end.
const cancelTimeout = 15 * time.Second

// cancelQueued cancels the actions that were queued before a failure or an interrupt.
func (o *operator) cancelQueued(s *state.State, actions []state.Action) error {
	ctx, cancel := o.cleanupContext()
	defer cancel()
	return cancelActions(ctx, s, actions)
}

func cancelActions(ctx context.Context, s *state.State, actions []state.Action) error {
	var errs []error
	for _, a := range actions {
		err := s.Update(ctx, func(tx *state.Tx) error { return tx.CancelAction(a.ID, time.Now()) })
		if !errors.Is(err, state.ErrInUse) && !errors.Is(err, state.ErrNotFound) {
			errs = append(errs, err)
		}
	}

	return errors.Join(errs...)
}
