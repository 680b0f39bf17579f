package osutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLocked is TryLockFile's error if another one has the lock.
const ErrLocked = unix.EWOULDBLOCK

// LockFile locks a folder or file that is there. It blocks as long as another one has the lock.
func LockFile(path string) (*os.File, error) { return lock(path, os.O_RDONLY, unix.LOCK_EX) }

// TryLockFile opens and locks a file or directory. flag holds the flags of os.OpenFile, which may create
// it. It returns ErrLocked if another descriptor has the lock. It returns fs.ErrNotExist if the file or its
// directory does not exist, or was removed meanwhile.
func TryLockFile(path string, flag int) (*os.File, error) {
	return lock(path, flag, unix.LOCK_EX|unix.LOCK_NB)
}

// TryShare does what TryLockFile does for a shared lock: several may have it while nobody has it alone.
func TryShare(path string, flag int) (*os.File, error) {
	return lock(path, flag, unix.LOCK_SH|unix.LOCK_NB)
}

// Share opens a file with the flags of os.OpenFile, and takes its lock together with others. It blocks as
// long as another process has the lock alone.
func Share(path string, flag int) (*os.File, error) { return lock(path, flag, unix.LOCK_SH) }

// TryAlone turns a shared lock into an exclusive one. It returns ErrLocked if others share the lock; the
// shared lock stays then.
func TryAlone(f *os.File) error {
	err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return nil
	}

	// The system has given up the shared lock to try for the other one.
	if shareErr := ShareAgain(f); shareErr != nil {
		return shareErr
	}
	return err
}

// ShareAgain lets others share a lock that the caller had alone. It blocks as long as another process has
// it alone.
func ShareAgain(f *os.File) error { return flock(f, unix.LOCK_SH) }

// lock opens and locks the file. It returns an error if the file was replaced meanwhile, since the lock then
// says nothing.
func lock(path string, flag, how int) (*os.File, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}

	err = flock(f, how)
	if err == nil && !isSameFile(f, path) {
		err = fmt.Errorf("%s was removed meanwhile: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		f.Close()
		return nil, err
	}

	return f, nil
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func isSameFile(f *os.File, path string) bool {
	opened, errA := f.Stat()
	named, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(opened, named)
}
