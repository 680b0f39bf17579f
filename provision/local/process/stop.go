package process

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Stop asks the process to end (SIGTERM) and, when the grace is over, kills it.
// It returns when the process is gone, at once if it is gone already.
func Stop(ctx context.Context, i Identity, grace time.Duration) error {
	if err := signal(i, syscall.SIGTERM); err != nil {
		return err
	}
	gentle, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if wait(gentle, i) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("cannot stop process %d: %w", i.PID, ctx.Err())
	}
	if err := signal(i, syscall.SIGKILL); err != nil {
		return err
	}
	return wait(ctx, i)
}

// signal sends the signal if the process still is the one that is meant.
func signal(i Identity, s syscall.Signal) error {
	if !i.Alive() {
		return nil
	}
	if err := syscall.Kill(i.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot stop process %d: %w", i.PID, err)
	}
	return nil
}

// wait returns nil when the process is gone. It looks, since only a parent is told.
func wait(ctx context.Context, i Identity) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i.Alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for process %d: %w", i.PID, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}
