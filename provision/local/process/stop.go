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
	if err := sendSignal(i, syscall.SIGTERM); err != nil {
		return err
	}
	gentle, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if awaitGone(gentle, i) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("cannot stop process %d: %w", i.PID, ctx.Err())
	}
	if err := sendSignal(i, syscall.SIGKILL); err != nil {
		return err
	}
	return awaitGone(ctx, i)
}

func sendSignal(i Identity, s syscall.Signal) error {
	if !i.Alive() {
		return nil
	}
	if err := syscall.Kill(i.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot stop process %d: %w", i.PID, err)
	}
	return nil
}

// It polls, since only a parent is told.
func awaitGone(ctx context.Context, i Identity) error {
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
