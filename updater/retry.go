package updater

import (
	"context"
	"errors"
	"log/slog"

	"bijou/state"
)

// retryStore calls f until the store does not fail any more: a worker whose store is away
// waits. It returns what f decides itself, and the error of a store that is gone for
// good.
func retryStore(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || errors.Is(err, errStale) || errors.Is(err, state.ErrSessionLost) ||
			errors.Is(err, state.ErrClaimed) || errors.Is(err, state.ErrClaimLost) {
			return err
		}
		if err := awaitRetry(ctx, err); err != nil {
			return err
		}
	}
}

// awaitRetry waits a moment after a fault of the store's, or returns one that no retry
// helps.
func awaitRetry(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isStoreGone(err):
		return err
	}
	slog.Warn("the store does not answer as it should; trying again", "error", err)
	sleep(ctx, retryInterval)
	return ctx.Err()
}

func isStoreGone(err error) bool {
	return errors.Is(err, state.ErrStoreGone) || errors.Is(err, state.ErrClosed)
}
