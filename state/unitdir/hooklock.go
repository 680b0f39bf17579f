package unitdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bijou/state/osutil"
)

// HookLock is the lock on a unit's hooks, in the file hook.lock in the unit's directory. The agent that runs
// the unit holds it shared, and exclusively while a hook runs. [Folder.TryQuiesce] also holds it shared, and
// so keeps hooks from starting. The kernel releases a lock when the process that holds it exits.
type HookLock struct{ file *os.File }

// OpenHookLock creates the file, and holds the lock shared until it is closed. Only the agent that holds the
// directory's lock may call it.
func (f Folder) OpenHookLock() (*HookLock, error) {
	file, err := osutil.Share(f.hookLockPath(), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("cannot share the lock of the unit's hooks: %w", err)
	}
	return &HookLock{file}, nil
}

func (f Folder) hookLockPath() string { return f.Path("hook.lock") }

// TryBegin takes the lock exclusively, until End, so that a hook can run. It returns false if the unit is
// quiesced.
func (l *HookLock) TryBegin() (bool, error) {
	err := osutil.TryAlone(l.file)
	if errors.Is(err, osutil.ErrLocked) {
		return false, nil
	}
	return err == nil, err
}

// End makes the lock shared again after a hook. It is idempotent.
func (l *HookLock) End() error { return osutil.ShareAgain(l.file) }

// Close releases the lock.
func (l *HookLock) Close() error { return l.file.Close() }

// TryQuiesce returns these errors if a later attempt can succeed.
var (
	// ErrHookRuns is returned while a hook is running.
	ErrHookRuns = errors.New("a hook runs")
	// ErrAgentUnaware is returned while the unit's agent does not have a HookLock: its binary is too old, or
	// the agent is just starting.
	ErrAgentUnaware = errors.New("cannot request that the unit's agent stop running hooks")
)

// Quiesced keeps hooks of a unit from starting until it is closed.
type Quiesced struct {
	folder Folder
	held   []*os.File // the locked files; empty if no agent has ever locked the directory
}

// TryQuiesce keeps hooks of the unit from starting, even if no agent runs the unit now. Several processes can
// quiesce a unit at the same time. TryQuiesce does not create files, since the agent may run as a different
// user. It does not notice a hook whose agent was killed. It returns ErrHookRuns or ErrAgentUnaware if a later
// attempt can succeed.
func (f Folder) TryQuiesce() (_ *Quiesced, err error) {
	resolved, err := filepath.EvalSymlinks(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return &Quiesced{folder: f}, nil
	}
	if err != nil {
		return nil, err
	}

	// Only one process at a time tries the locks. Otherwise one of two could take the other's attempt for an
	// agent or a hook.
	turn, err := osutil.LockFile(resolved)
	if errors.Is(err, fs.ErrNotExist) {
		return &Quiesced{folder: f}, nil
	}
	if err != nil {
		return nil, err
	}
	defer turn.Close()

	q := &Quiesced{folder: Folder(resolved)}
	defer func() {
		if err != nil {
			_ = q.Close()
		}
	}()

	hookLockInUse, err := q.folder.isHookLockInUse()
	if err != nil {
		return nil, err
	}

	// An agent holds this lock exclusively, so none can start while q shares it. If an agent has the lock and
	// nobody holds the hook lock, then the agent does not use the hook lock.
	err = q.hold(osutil.TryShare, q.folder.Path("lock"))
	isAgentRunning := errors.Is(err, osutil.ErrLocked)
	switch {
	case isAgentRunning && !hookLockInUse:
		return nil, ErrAgentUnaware
	case err != nil && !isAgentRunning:
		return nil, err
	}

	// A running agent shares the hook lock. It cannot take it exclusively for a hook while q also shares it.
	err = q.hold(osutil.TryShare, q.folder.hookLockPath())
	if errors.Is(err, osutil.ErrLocked) {
		return nil, ErrHookRuns
	}
	if err != nil {
		return nil, err
	}

	return q, nil
}

// isHookLockInUse reports whether an agent, or another process that quiesces the unit, holds the hook lock. An
// agent with an older binary does not use the lock.
func (f Folder) isHookLockInUse() (bool, error) {
	lock, err := osutil.TryLockFile(f.hookLockPath(), os.O_RDONLY)
	switch {
	case errors.Is(err, osutil.ErrLocked):
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}

	return false, lock.Close()
}

// hold locks a file and keeps the lock. It does nothing if the file does not exist.
func (q *Quiesced) hold(lock func(path string, flag int) (*os.File, error), path string) error {
	file, err := lock(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	q.held = append(q.held, file)
	return nil
}

// Holds reports whether no hook has started so far, as far as the locks can tell. If no agent had ever run the
// unit, TryQuiesce had nothing to lock, and Holds reports whether an agent has started since then. It does not
// notice that the agent was replaced by one with an older binary, which does not use the hook lock.
func (q *Quiesced) Holds() bool {
	if len(q.held) > 0 {
		return true
	}
	_, err := os.Stat(q.folder.Path("lock"))
	return errors.Is(err, fs.ErrNotExist)
}

// Folder returns the unit's directory.
func (q *Quiesced) Folder() Folder { return q.folder }

// Close lets hooks start again.
func (q *Quiesced) Close() error {
	var errs []error
	for _, file := range q.held {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
