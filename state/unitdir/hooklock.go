package unitdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bijou/state/osutil"
)

// HookLock lets one hook of a unit run, or those who do not want any to run. It is a lock on the file
// hook.lock of the unit's folder. The agent that runs the unit shares it as long as it lives,
// and has it alone while a hook runs. [Folder.TryQuiesce] shares it too, and so keeps hooks
// from beginning. The system gives it up for a process that dies.
type HookLock struct{ file *os.File }

// OpenHookLock makes the file, and shares the lock until it is closed. Only the agent that
// holds the folder's lock may call it.
func (f Folder) OpenHookLock() (*HookLock, error) {
	file, err := osutil.Share(f.hookLockPath(), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("cannot share the lock of the unit's hooks: %w", err)
	}
	return &HookLock{file}, nil
}

func (f Folder) hookLockPath() string { return f.Path("hook.lock") }

// TryBegin reports whether a hook may run from now until End.
func (l *HookLock) TryBegin() (bool, error) {
	err := osutil.TryAlone(l.file)
	if errors.Is(err, osutil.ErrLocked) {
		return false, nil
	}
	return err == nil, err
}

// End marks that no hook runs. It does no harm if none did.
func (l *HookLock) End() error { return osutil.ShareAgain(l.file) }

// Close gives up the lock.
func (l *HookLock) Close() error { return l.file.Close() }

// The reasons for which TryQuiesce fails for now.
var (
	ErrHookRuns = errors.New("a hook runs")
	// ErrAgentUnaware also is true for an instant while an agent starts.
	ErrAgentUnaware = errors.New("cannot ask its agent to stop running hooks")
)

// Quiesced keeps an agent from beginning a hook of the unit until it is closed.
type Quiesced struct {
	folder Folder
	held   []*os.File // empty: no agent has ever locked the folder
}

// TryQuiesce keeps hooks of the unit from beginning, also if no agent runs the unit now. It makes no file,
// since the agent may belong to a different user. It does not see a hook whose agent has died. It returns
// ErrHookRuns or ErrAgentUnaware if trying again can help.
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

// hasAwareAgent reports whether an agent, or another process that quiesces the unit, has the lock of the
// hooks. An agent of an older binary does not know the lock.
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

// hold keeps a lock of a file. If the file is not there, there is nothing to hold.
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

// Holds reports whether no hook can have begun so far. Where no agent has run the unit yet there was
// nothing to lock, and one may have started since.
func (q *Quiesced) Holds() bool {
	if len(q.held) > 0 {
		return true
	}
	_, err := os.Stat(q.folder.Path("lock"))
	return errors.Is(err, fs.ErrNotExist)
}

// Folder returns the unit's directory.
func (q *Quiesced) Folder() Folder { return q.folder }

// Close lets hooks run again.
func (q *Quiesced) Close() error {
	var errs []error
	for _, file := range q.held {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
