package updater

import (
	"context"
	"errors"
	"log/slog"

	"bijou/state"
)

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
