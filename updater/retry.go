package updater

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bijou/state/backoff"
	"bijou/state/keyspace"
)

// RetryInterval is how long whatever failed is left alone.
const RetryInterval = time.Second

// ShutdownTimeout bounds what a process that is told to end still does, also with a store
// that does not answer.
const ShutdownTimeout = 5 * time.Second

// AwaitRetry waits a moment after a fault of the store's, or returns one that no retry
// helps.
func AwaitRetry(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case IsStoreGone(err):
		return err
	}
	slog.Warn("the store does not answer as it should; trying again", "error", err)
	_ = backoff.Sleep(ctx, RetryInterval)
	return ctx.Err()
}

// IsStoreGone reports whether no retry helps, since the store was deleted or closed.
func IsStoreGone(err error) bool {
	return errors.Is(err, keyspace.ErrStoreGone) || errors.Is(err, keyspace.ErrClosed)
}
