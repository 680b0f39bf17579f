package juju

import (
	"context"
	"errors"
	"time"

	"bijou/state"
	"bijou/state/actions"
)

// cancelTimeout is longer than the time that an agent needs to kill the process of a cancelled action.
const cancelTimeout = 15 * time.Second

// cancelQueued cancels the actions that were queued before a failure or an interrupt.
func (o *operator) cancelQueued(s *state.State, queued []actions.Action) error {
	ctx, cancel := o.cleanupContext()
	defer cancel()
	return cancelActions(ctx, s, queued)
}

// cancelActions cancels waiting actions, and makes the agents end running ones. It ignores actions that have
// ended or are gone. After an error it continues with the next action, and returns all errors together.
func cancelActions(ctx context.Context, s *state.State, queued []actions.Action) error {
	var errs []error
	for _, a := range queued {
		err := s.Update(ctx, func(tx *state.Tx) error { return actions.Cancel(tx, a.ID, time.Now()) })
		hasEnded := errors.Is(err, state.ErrInUse)
		isGone := errors.Is(err, state.ErrNotFound)
		if !hasEnded && !isGone {
			errs = append(errs, err) // Join drops nil
		}
	}

	return errors.Join(errs...)
}
