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

// TryQuiesce keeps hooks of the unit from starting, even if no agent runs the unit now. It does not create
// files, since the agent may run as a different user. It does not notice a hook whose agent was killed. It
// returns ErrHookRuns or ErrAgentUnaware if a later attempt can succeed.
func (f Folder) TryQuiesce() (_ *Quiesced, err error) {
	resolved, err := filepath.EvalSymlinks(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return &Quiesced{folder: f}, nil
	}
	if err != nil {
		return nil, err
	}

	q := &Quiesced{folder: Folder(resolved)}
	defer func() {
		if err != nil {
			_ = q.Close()
		}
	}()

	aware, err := q.folder.hasAwareAgent()
	if err != nil {
		return nil, err
	}

	if !aware {
		err := q.hold(osutil.TryLockFile, q.folder.Path("lock"))
		if errors.Is(err, osutil.ErrLocked) {
			return nil, ErrAgentUnaware
		}
		if err != nil {
			return nil, err
		}
	}

	err = q.hold(osutil.TryShare, q.folder.hookLockPath())
	if errors.Is(err, osutil.ErrLocked) {
		return nil, ErrHookRuns
	}
	return q, err
}

// hasAwareAgent reports whether an agent, or another process that quiesces the unit, holds the hook lock. An
// agent with an older binary does not use the lock.
func (f Folder) hasAwareAgent() (bool, error) {
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

// Holds reports whether it is certain that no hook has started so far. If no agent had ever run the unit,
// TryQuiesce had nothing to lock, and an agent may have started since then.
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
