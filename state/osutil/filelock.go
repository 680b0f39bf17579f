package osutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLocked is returned by functions that do not wait, such as TryLockFile, if another descriptor has the lock.
const ErrLocked = unix.EWOULDBLOCK

// LockFile opens and locks an existing file or directory. It blocks while another descriptor has the lock. It
// returns fs.ErrNotExist if the file does not exist, or was removed in the meantime. The lock ends when the
// returned file is closed.
func LockFile(path string) (*os.File, error) { return lock(path, os.O_RDONLY, unix.LOCK_EX) }

// TryLockFile does what LockFile does, without waiting. flag has the flags for os.OpenFile, which can create
// the file. TryLockFile returns ErrLocked if another descriptor has the lock. It returns fs.ErrNotExist if
// the file or its directory does not exist, or was removed in the meantime.
func TryLockFile(path string, flag int) (*os.File, error) {
	return lock(path, flag, unix.LOCK_EX|unix.LOCK_NB)
}

// TryShare does what TryLockFile does, for a shared lock. Several descriptors can have a shared lock, while no
// descriptor has an exclusive lock.
func TryShare(path string, flag int) (*os.File, error) {
	return lock(path, flag, unix.LOCK_SH|unix.LOCK_NB)
}

// Share does what TryShare does, but blocks while another descriptor has an exclusive lock.
func Share(path string, flag int) (*os.File, error) { return lock(path, flag, unix.LOCK_SH) }

// TryAlone turns a shared lock into an exclusive lock. If another descriptor has the lock, TryAlone does not wait
// for the exclusive lock. Instead it takes the shared lock again, as [ShareAgain] does, and returns ErrLocked.
func TryAlone(f *os.File) error {
	err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return nil
	}

	// The kernel has released the shared lock before it tried to take the exclusive lock.
	if shareErr := ShareAgain(f); shareErr != nil {
		return shareErr
	}
	return err
}

// ShareAgain turns an exclusive lock into a shared lock. It blocks while another descriptor has an exclusive
// lock.
func ShareAgain(f *os.File) error { return flock(f, unix.LOCK_SH) }

// lock opens the file with the flags in flag, and locks it by the operation how of flock(2). It returns
// fs.ErrNotExist if the file was removed or replaced in the meantime, since a lock of the old file is
// useless.
func lock(path string, flag, how int) (*os.File, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}

	if err := flock(f, how); err != nil {
		f.Close()
		return nil, err
	}
	if !isSameFile(f, path) {
		f.Close()
		return nil, fmt.Errorf("%s was removed while it was being locked: %w", path, fs.ErrNotExist)
	}

	return f, nil
}

// flock calls flock(2) until no signal interrupts the call.
func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// isSameFile reports whether the path still leads to the open file.
func isSameFile(f *os.File, path string) bool {
	opened, openedErr := f.Stat()
	named, namedErr := os.Stat(path)
	return openedErr == nil && namedErr == nil && os.SameFile(opened, named)
}
