package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bijou/state"
	"bijou/state/backoff"
)

// ReadRetrying is state.Read as soon as the store answers.
func ReadRetrying[T any](ctx context.Context, s *state.State, f func(v *state.View) (T, error)) (result T, err error) {
	err = RetryWhileAway(ctx, func() (err error) {
		result, err = state.Read(ctx, s, f)
		return err
	})
	return result, err
}

// RetryInterval is between two tries at what is away.
const RetryInterval = time.Second

// RetryWhileAway calls f until the store answers. It logs once that the store is away.
func RetryWhileAway(ctx context.Context, f func() error) error {
	for logged := false; ; logged = true {
		err := f()
		if err == nil {
			return nil
		}
		if !errors.Is(err, state.ErrAway) {
			return fmt.Errorf("cannot begin: %w", err)
		}
		if !logged {
			slog.Warn("cannot begin; trying again until it succeeds", "error", err)
		}
		if err := backoff.Sleep(ctx, RetryInterval); err != nil {
			return err
		}
	}
}
