// Package filelock is locks on files and folders. A lock lasts until the file that it
// returns is closed, in this process and in each child that was given it: it ends with its
// holders, however they end. The package imports nothing of bijou.
package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLocked is TryLock's error if another one has the lock.
const ErrLocked = unix.EWOULDBLOCK

// Lock locks a folder or file that is there. It blocks as long as another one has the lock.
func Lock(path string) (*os.File, error) { return lock(path, os.O_RDONLY, unix.LOCK_EX) }

// TryLock opens a file or folder with the flags of os.OpenFile, which may create it, and
// locks it. ErrLocked: another one has the lock. fs.ErrNotExist: it, or the folder that it
// is in, is not there or was removed meanwhile.
func TryLock(path string, flag int) (*os.File, error) {
	return lock(path, flag, unix.LOCK_EX|unix.LOCK_NB)
}

func lock(path string, flag, how int) (*os.File, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), how)
	}
	if err == nil && !isSameFile(f, path) {
		err = fmt.Errorf("%s was removed meanwhile: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func isSameFile(f *os.File, path string) bool {
	opened, errA := f.Stat()
	named, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(opened, named)
}
