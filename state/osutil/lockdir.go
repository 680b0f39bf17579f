package osutil

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// lockInterval is how often LockDir looks whether the lock is free.
const lockInterval = 10 * time.Millisecond

// LockDir makes a directory with mode 0700 and locks it. It waits while another process has the lock, until ctx is
// done. The lock ends when the returned file, and every copy of it that a child has, is closed.
func LockDir(ctx context.Context, path string) (*os.File, error) {
	for {
		lock, err := TryLockDir(path)
		if err != nil {
			return nil, fmt.Errorf("cannot lock %q: %w", path, err)
		}
		if lock != nil {
			return lock, nil
		}

		select {
		case <-time.After(lockInterval):
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot lock %q, which another process has: %w", path, ctx.Err())
		}
	}
}

// TryLockDir is [LockDir] without waiting. It returns nil if another process has the lock, or has removed the
// directory meanwhile.
func TryLockDir(path string) (*os.File, error) {
	if err := MkdirAll(path, 0o700); err != nil {
		return nil, err
	}

	lock, err := TryLockFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrLocked) {
		return nil, nil
	}

	return lock, err
}
