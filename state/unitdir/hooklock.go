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
// the unit holds the lock exclusively while hooks run, and shared at all other times. A process that quiesces
// the unit with [Folder.TryQuiesce] holds the lock shared, so the agent cannot start a hook. The kernel
// releases a lock when the process that holds it exits.
type HookLock struct{ file *os.File }

// OpenHookLock takes the hook lock shared, and creates its file if it does not exist. The caller must be the
// agent that holds the lock of the directory.
func (f Folder) OpenHookLock() (*HookLock, error) {
	file, err := osutil.Share(f.hookLockPath(), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("cannot share the lock of the unit's hooks: %w", err)
	}
	return &HookLock{file}, nil
}

// hookLockPath returns the path of the file of the HookLock.
func (f Folder) hookLockPath() string { return f.Path("hook.lock") }

// TryBegin takes the lock exclusively until End, so that hooks can run. It returns false if the unit is
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
	ErrHookRuns = errors.New("a hook is running")
	// ErrAgentUnaware is returned while the unit's agent does not use a HookLock: its binary is too old, or
	// the agent is just starting.
	ErrAgentUnaware = errors.New("cannot request that the unit's agent stop running hooks")
)

// Quiesced holds the locks of a quiesced unit: no hook of the unit can start until Close.
type Quiesced struct {
	folder Folder
	held   []*os.File // the locked files; empty if no agent has ever locked the directory
}

// TryQuiesce locks the unit's directory so that no hook of the unit can start until the returned lock is
// closed. It also works if no agent runs the unit now. If the files to lock do not exist, it locks nothing, and
// [Quiesced.Holds] returns false once an agent has started. Several processes can quiesce a unit at the same
// time. TryQuiesce returns ErrHookRuns or ErrAgentUnaware if a later attempt can succeed.
//
// TryQuiesce does not create files, since the agent may run as a different user. It does not notice a running
// hook whose agent was killed.
func (f Folder) TryQuiesce() (*Quiesced, error) {
	// Without a directory there is nothing to lock.
	resolved, err := filepath.EvalSymlinks(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return &Quiesced{folder: f}, nil
	}
	if err != nil {
		return nil, err
	}

	// Only one process at a time tries the locks. Otherwise a process could mistake the attempt of another
	// process for an agent or a hook.
	attempt, err := osutil.LockFile(resolved)
	if errors.Is(err, fs.ErrNotExist) { // the directory was removed in the meantime
		return &Quiesced{folder: f}, nil
	}
	if err != nil {
		return nil, err
	}
	defer attempt.Close()

	q := &Quiesced{folder: Folder(resolved)}
	if err := q.tryLocks(); err != nil {
		_ = q.Close()
		return nil, err
	}
	return q, nil
}

// tryLocks takes the locks that keep agents and hooks of the unit from starting. An agent holds the directory's lock
// exclusively while it runs. It also shares the hook lock, and holds that lock exclusively during a hook. An agent with
// an older binary does not use the hook lock: if one runs, tryLocks returns ErrAgentUnaware. During a hook it returns
// ErrHookRuns. The caller must close q even after an error. The caller holds the lock of attempts, since another
// process in tryLocks would look like an agent that uses the hook lock.
func (q *Quiesced) tryLocks() error {
	hookLockInUse, err := q.folder.isHookLockInUse()
	if err != nil {
		return err
	}

	// While q shares the lock of the directory, no agent can start.
	err = q.hold(osutil.TryShare, q.folder.Path("lock"))
	isAgentRunning := errors.Is(err, osutil.ErrLocked)
	if err != nil && !isAgentRunning {
		return err
	}
	if isAgentRunning && !hookLockInUse {
		return ErrAgentUnaware
	}

	// While q shares the hook lock, a running agent cannot take that lock exclusively for a hook.
	err = q.hold(osutil.TryShare, q.folder.hookLockPath())
	if errors.Is(err, osutil.ErrLocked) {
		return ErrHookRuns
	}
	return err
}

// isHookLockInUse reports whether an agent, or another process that quiesces the unit, holds the hook lock. An
// agent with an older binary does not use the lock.
func (f Folder) isHookLockInUse() (bool, error) {
	lock, err := osutil.TryLockFile(f.hookLockPath(), os.O_RDONLY)
	if errors.Is(err, osutil.ErrLocked) {
		return true, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	return false, lock.Close()
}

// hold calls lock for the file at path, and keeps the locked file until Close. It does nothing if the file
// does not exist.
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

// Holds reports whether no hook can have started since TryQuiesce. This is true while q holds a lock. If no
// agent had ever run the unit, TryQuiesce had nothing to lock. In that case Holds returns true until an agent
// has started.
//
// Holds does not notice if the agent was replaced by one with an older binary, which does not use the hook
// lock.
func (q *Quiesced) Holds() bool {
	if len(q.held) > 0 {
		return true
	}

	_, err := os.Stat(q.folder.Path("lock"))
	noAgentStarted := errors.Is(err, fs.ErrNotExist)
	return noAgentStarted
}

// Folder returns the unit's directory.
func (q *Quiesced) Folder() Folder { return q.folder }

// Close releases the locks of q. Hooks can start again once no other process quiesces the unit.
func (q *Quiesced) Close() error {
	var errs []error
	for _, file := range q.held {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
