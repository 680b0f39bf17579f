package nspawn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"bijou/state/backoff"
	"bijou/state/durable"
	"bijou/state/filelock"
)

// Until the file that it returns, and every copy of it that a child has, is closed, nobody else has
// the lock. The folder is made.
func lockFolder(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := tryLock(path)
		if err != nil {
			return nil, fmt.Errorf("cannot lock %q: %w", path, err)
		}
		if f != nil {
			return f, nil
		}
		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return nil, fmt.Errorf("cannot lock %q, which another process has: %w", path, err)
		}
	}
}

// tryLock returns nil if another one has the lock, or the folder went away meanwhile.
func tryLock(path string) (*os.File, error) {
	if err := durable.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	f, err := filelock.TryLock(path, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, filelock.ErrLocked) {
		return nil, nil
	}
	return f, err
}

// pollInterval is for what nobody tells of: a lock that is free, a process that ends.
const pollInterval = 10 * time.Millisecond
