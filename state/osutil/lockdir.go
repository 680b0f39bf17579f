package osutil

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// lockInterval is how often LockDir tries to get the lock.
const lockInterval = 10 * time.Millisecond

// LockDir creates a directory with mode 0700, if necessary, and locks it. While another process has the lock,
// LockDir tries again until ctx is done. The lock ends when the returned file, and each copy of its descriptor in
// a child process, is closed.
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
			return nil, fmt.Errorf("cannot lock %q, which another process has locked: %w", path, ctx.Err())
		}
	}
}

// TryLockDir does what [LockDir] does, without waiting. It returns a nil file and no error if another process
// has the lock, or has removed the directory in the meantime.
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
