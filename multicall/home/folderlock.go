package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bijou/state/durable"
	"bijou/state/filelock"
)

// FolderLock is the right to make or remove one environment's folder. It is a lock
// on the folder itself, so it ends with the process and leaves no file.
type FolderLock struct {
	dir *os.File
}

// Lock makes the environment's folder if needed and locks it. ErrBusy: another
// process has it.
func (h Home) Lock(name string) (*FolderLock, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	path := h.Path(name)
	for {
		// Others may pass through, so that what a charm runs as another user finds
		// the charm, but not look around; what is secret has modes of its own.
		if err := durable.MkdirAll(path, 0o711); err != nil {
			return nil, fmt.Errorf("cannot make the folder of environment %q: %w", name, err)
		}
		l, err := lockFolder(path)
		if err != nil || l != nil {
			return l, err
		}
	}
}

// lockFolder returns nil without an error if the folder was removed meanwhile and has to
// be made again.
func lockFolder(path string) (*FolderLock, error) {
	dir, err := filelock.TryLock(path, os.O_RDONLY)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case errors.Is(err, filelock.ErrLocked):
		return nil, fmt.Errorf("cannot lock %q: %w", path, ErrBusy)
	case err != nil:
		return nil, fmt.Errorf("cannot lock %q: %w", path, err)
	}
	return &FolderLock{dir: dir}, nil
}

// Bootstrapped reports whether the folder holds an environment already.
func (l *FolderLock) Bootstrapped() bool {
	_, err := os.Stat(filepath.Join(l.dir.Name(), recordFile))
	return err == nil
}

// Clear removes what the folder holds, but not the folder. environment.yaml
// goes last: until then the environment is there and its removal can be repeated.
func (l *FolderLock) Clear() error {
	entries, err := os.ReadDir(l.dir.Name())
	if err != nil {
		return fmt.Errorf("cannot clear %q: %w", l.dir.Name(), err)
	}
	for _, e := range entries {
		if e.Name() == recordFile {
			continue
		}
		if err := removeAll(filepath.Join(l.dir.Name(), e.Name())); err != nil {
			return fmt.Errorf("cannot clear %q: %w", l.dir.Name(), err)
		}
	}
	return os.RemoveAll(filepath.Join(l.dir.Name(), recordFile))
}

// Remove clears the folder and removes it; the lock is still to be released.
func (l *FolderLock) Remove() error {
	if err := l.Clear(); err != nil {
		return err
	}
	if err := os.Remove(l.dir.Name()); err != nil {
		return fmt.Errorf("cannot remove %q: %w", l.dir.Name(), err)
	}
	return nil
}

// Release unlocks the folder.
func (l *FolderLock) Release() { _ = l.dir.Close() }

// removeAll is os.RemoveAll for trees in which a charm has made folders read-only.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, os.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(path, func(p string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
