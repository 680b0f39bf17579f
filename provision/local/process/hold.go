package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"bijou/state/osutil"
)

// ErrHeld means that another living process runs the machine of a directory.
var ErrHeld = errors.New("another process runs the machine")

// Hold is the exclusive right to run the machine of one directory. A process has the right while it holds the
// lock on the lock file. The pid file in the same directory names the process, so that others can signal it.
type Hold struct {
	lock *os.File
	pid  string
}

// lockGraceTimeout is how long a lock can outlive its holder. Threads of a killed process may still have its
// files open, and so may a child between fork and exec.
const lockGraceTimeout = 2 * time.Second

// waitWhile waits while isTrue returns true, up to lockGraceTimeout. It is for conditions of processes that
// last only a moment, such as the exit of a process.
func waitWhile(isTrue func() bool) {
	end := time.Now().Add(lockGraceTimeout)
	for isTrue() && time.Now().Before(end) {
		time.Sleep(time.Millisecond)
	}
}

// Take gives this process the right to run the machine in dir. It locks DIR/agent.lock and writes
// DIR/agent.pid. It returns ErrHeld if another process runs the machine. It waits a moment for the lock of a
// process that has just ended.
func Take(dir string) (*Hold, error) {
	self, err := Self()
	if err != nil {
		return nil, err
	}

	// The lock of a process that has just ended can still be held. Try again while Holder finds no living process.
	lock, err := lockFile(dir)
	end := time.Now().Add(lockGraceTimeout)
	for errors.Is(err, ErrHeld) && time.Now().Before(end) {
		if _, holderErr := Holder(dir); !errors.Is(holderErr, ErrGone) {
			break
		}
		time.Sleep(5 * time.Millisecond)
		lock, err = lockFile(dir)
	}
	if err != nil {
		return nil, err
	}

	h := &Hold{lock: lock, pid: pidFile(dir)}
	if err := self.WriteFile(h.pid); err != nil {
		h.lock.Close()
		return nil, err
	}

	return h, nil
}

// Release gives up the right to the directory. The process can continue.
func (h *Hold) Release() {
	// A pid file that stays is harmless, since it counts only while its process has the lock file open.
	_ = os.Remove(h.pid)
	// Close unlocks the file even if it returns an error.
	_ = h.lock.Close()
}

// Holder returns the living process that runs the machine in dir. It returns ErrGone if no process
// runs the machine. It waits a moment for a process that is just ending, or that is just replacing
// itself with a new version of the binary.
//
// If the directory is a copy, its pid file names the process of the original. That process does not count,
// since it does not have the copy's lock file open.
func Holder(dir string) (Identity, error) {
	i, err := ReadFile(pidFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return Identity{}, fmt.Errorf("no process runs %q: %w", dir, ErrGone)
	}
	if err != nil {
		return Identity{}, err
	}

	waitWhile(i.isExiting)

	// A process that replaces itself with a new version of the binary closes the lock file, and soon locks it
	// again.
	holds := false
	waitWhile(func() bool {
		holds = i.hasOpen(filepath.Join(dir, lockName))
		return !holds && i.Alive()
	})

	if !holds || !i.Alive() {
		return Identity{}, fmt.Errorf("process %d of %q: %w", i.PID, dir, ErrGone)
	}

	return i, nil
}

// hasOpen reports whether the process has the file open. It returns true if it cannot determine this, so that
// [Holder] then trusts the pid file.
func (i Identity) hasOpen(path string) bool {
	want, err := os.Stat(path)
	if err != nil {
		return true
	}

	fdDir := fmt.Sprintf("/proc/%d/fd", i.PID)
	entries, err := os.ReadDir(fdDir)
	if err != nil {
		return true
	}

	for _, e := range entries {
		info, err := os.Stat(filepath.Join(fdDir, e.Name()))
		if err == nil && os.SameFile(info, want) {
			return true
		}
	}

	return false
}

// IsFree reports whether no process runs the machine in dir. It tries to take the lock, so unlike [Holder] it
// also notices a process that has not written its pid file yet. It creates the lock file if it is missing. A
// directory that does not exist is free.
func IsFree(dir string) (bool, error) {
	lock, err := lockFile(dir)
	switch {
	case errors.Is(err, ErrHeld):
		return false, nil
	case errors.Is(err, os.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	}

	return true, lock.Close()
}

// lockName is the lock file. The process that holds the lock runs the machine.
const lockName = "agent.lock"

func pidFile(dir string) string { return filepath.Join(dir, "agent.pid") }

// lockFile locks the lock file in dir, and creates the file if it is missing. It returns ErrHeld if another
// process holds the lock. It returns os.ErrNotExist if the directory does not exist.
func lockFile(dir string) (*os.File, error) {
	// The file is opened for reading, since a lock must also be possible on a read-only file system.
	lock, err := osutil.TryLockFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDONLY)
	if errors.Is(err, osutil.ErrLocked) {
		err = ErrHeld
	}
	if err != nil {
		return lock, fmt.Errorf("cannot lock the machine's directory %q: %w", dir, err)
	}

	return lock, nil
}
