package daemon

import (
	"context"
	"errors"
	"sync"

	"bijou/state"
)

// Role is one part of a process; it returns when ctx is done, or its work is.
type Role func(ctx context.Context) error

// RunRoles runs a process's roles until all have ended. It cancels the other roles when one
// ends, for whatever reason. A store that is gone ends all, and is returned as one error.
func RunRoles(ctx context.Context, roles []Role) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(roles))
	var running sync.WaitGroup
	for i, r := range roles {
		running.Go(func() {
			defer cancel()
			errs[i] = r(ctx)
		})
	}
	running.Wait()
	for _, err := range errs {
		if errors.Is(err, state.ErrStoreGone) {
			return err
		}
	}
	return errors.Join(errs...)
}
