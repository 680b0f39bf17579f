package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"bijou/state/osutil"
)

// ErrHeld: another living process runs the machine of that folder.
var ErrHeld = errors.New("another process runs it")

// Hold is the sole right to run the machine of one folder. The lock file
// decides; the pid file beside it tells others whom to signal.
type Hold struct {
	lock *os.File
	pid  string
}

// A lock may outlive its holder for a while: the threads of a process that was killed, and a child
// between fork and exec, have its files open still.
const lockGraceTimeout = 2 * time.Second

// waitWhile waits briefly while lasts returns true. It is for processes that the kernel is about to end.
func waitWhile(lasts func() bool) {
	for end := time.Now().Add(lockGraceTimeout); lasts() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// Take makes this process the one that runs the machine in that directory. It locks DIR/agent.lock and
// writes DIR/agent.pid. It returns ErrHeld if another process runs the machine.
func Take(dir string) (*Hold, error) {
	self, err := Self()
	if err != nil {
		return nil, err
	}

	lock, err := lockFile(dir)
	for end := time.Now().Add(lockGraceTimeout); errors.Is(err, ErrHeld) && time.Now().Before(end); lock, err = lockFile(dir) {
		if _, holder := Holder(dir); !errors.Is(holder, ErrGone) {
			break
		}
		time.Sleep(5 * time.Millisecond)
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

// Release gives up the right to the directory. The process may live on.
func (h *Hold) Release() {
	_ = os.Remove(h.pid)
	_ = h.lock.Close()
}

// Holder returns the living process that runs the machine in that directory. It returns ErrGone if none
// does. It waits a moment for a process that is just ending. If the directory is a copy, its file names the
// process of the original, which does not count, since it has no file of this directory open.
func Holder(dir string) (Identity, error) {
	i, err := ReadFile(pidFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return Identity{}, fmt.Errorf("no process runs %q: %w", dir, ErrGone)
	}
	if err != nil {
		return Identity{}, err
	}

	waitWhile(i.isExiting)
	holds := false
	waitWhile(func() bool { // it may be on its way into another binary
		holds = i.hasOpen(filepath.Join(dir, lockName))
		return !holds && i.Alive()
	})

	if !holds || !i.Alive() {
		return Identity{}, fmt.Errorf("process %d of %q: %w", i.PID, dir, ErrGone)
	}

	return i, nil
}

// hasOpen reports whether the process has the file open. It returns true if that cannot be seen.
func (i Identity) hasOpen(path string) bool {
	want, err := os.Stat(path)
	if err != nil {
		return true
	}

	folder := fmt.Sprintf("/proc/%d/fd", i.PID)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return true
	}

	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(folder, e.Name())); err == nil && os.SameFile(info, want) {
			return true
		}
	}

	return false
}

// IsFree reports whether no process runs the machine, not even one that has not written its pid file
// yet.
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

// Whoever has the lock of this file may run the machine.
const lockName = "agent.lock"

func pidFile(dir string) string { return filepath.Join(dir, "agent.pid") }

func lockFile(dir string) (*os.File, error) {
	// A lock is held on a read-only file system, too.
	lock, err := osutil.TryLockFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDONLY)
	if errors.Is(err, osutil.ErrLocked) {
		err = ErrHeld
	}
	if err != nil {
		return lock, fmt.Errorf("cannot lock the machine's folder %q: %w", dir, err)
	}

	return lock, nil
}
