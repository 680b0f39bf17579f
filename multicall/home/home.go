// Package home handles the operator's directory, which is BIJOU_HOME, and the
// environments in it. This is its layout:
//
//	BIJOU_HOME/current                  the name of the current environment
//	BIJOU_HOME/.model-defaults.json     the configuration that new environments begin with
//	BIJOU_HOME/NAME/environment.yaml    the record, which bootstrap writes last: the environment exists if this file does
//	BIJOU_HOME/NAME/state/state.db      the store, unless --state says otherwise
//	BIJOU_HOME/NAME/tools/VERSION-SHA8/ the binary and a symlink for each applet
//	BIJOU_HOME/NAME/machines/ID/        a local machine: agent.pid, agent.log, units/
//
// It does not open a state or start a process.
package home

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"bijou/state/charm"
	"bijou/state/osutil"
)

var (
	// ErrNoEnvironment is returned if there is no environment with that name, or no environment at all.
	ErrNoEnvironment = errors.New("there is no model")
	// ErrRemoving is returned if the environment is being removed, so that no daemon may run for it.
	ErrRemoving = errors.New("the model is being destroyed")
	// ErrBusy is returned if a different process has locked the environment's directory, for example to bootstrap or to
	// destroy the environment.
	ErrBusy = errors.New("another process is working on the model")
)

var namePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._-]*\z`)
})

// currentFile holds the name of the current environment. No environment can have this name.
const currentFile = "current"

// defaultsFile holds the defaults of new environments. No environment's name can begin with a dot.
const defaultsFile = ".model-defaults.json"

// Home is one BIJOU_HOME.
type Home struct {
	Dir string // absolute
}

// Find returns the directory that $BIJOU_HOME names or, if it is not set, ~/.bijou. It does not create the directory.
func Find() (Home, error) {
	dir := os.Getenv("BIJOU_HOME")
	if dir == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return Home{}, fmt.Errorf("cannot find a home directory (set BIJOU_HOME): %w", err)
		}
		dir = filepath.Join(user, ".bijou")
	}

	abs, err := filepath.Abs(dir)
	if err != nil {
		return Home{}, fmt.Errorf("cannot find the directory %q: %w", dir, err)
	}

	return Home{Dir: abs}, nil
}

// CheckName returns an error for a name that no environment can have. The name becomes a directory, and a
// part of commands that operators copy.
func CheckName(name string) error {
	if name == currentFile || len(name) > 63 || !namePattern().MatchString(name) {
		return charm.Invalidf(
			"%q cannot name a model: want at most 63 letters, digits, '-', '_' and '.', a letter or digit first",
			name,
		)
	}

	return nil
}

// Path returns the directory of the environment called name, which need not exist.
func (h Home) Path(name string) string { return filepath.Join(h.Dir, name) }

// Names lists the environments that were bootstrapped, sorted.
func (h Home) Names() ([]string, error) {
	// A glob would not work if the directory's own name contains * or [.
	entries, err := os.ReadDir(h.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot list models in %q: %w", h.Dir, err)
	}

	var names []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(h.Path(e.Name()), recordFile)); err == nil {
			names = append(names, e.Name())
		}
	}

	return names, nil
}

// Controller and Owner are parts of an environment's name in the form that Juju 3 uses: bijou:admin/NAME.
// There are no controllers and no users. The owner of the environment's directory controls the environment.
const (
	Controller = "bijou"
	Owner      = "admin"
)

// EnvironmentName returns the part NAME of a name of the form [[bijou]:][admin/]NAME, which juju shows to programs. It keeps
// the name of any other controller, and so returns a name that no environment can have.
func EnvironmentName(model string) string {
	controller, rest, hasController := strings.Cut(model, ":")
	isOwnController := controller == Controller || controller == ""
	if hasController && isOwnController {
		model = rest
	}
	return strings.TrimPrefix(model, Owner+"/")
}

// FromShell returns the environment that the shell's $JUJU_ENV or, as in Juju 3, $JUJU_MODEL names. It returns "" if
// neither is set.
func FromShell() string {
	return cmp.Or(os.Getenv("JUJU_ENV"), EnvironmentName(os.Getenv("JUJU_MODEL")))
}

// Choose returns the environment called name. If name is "", it returns the environment that the shell names. If
// the shell names none, it returns the current environment or, without a current one, the only environment. It
// returns ErrNoEnvironment if there is no such environment, and a different error if there are several
// environments to choose from.
func (h Home) Choose(name string) (Environment, error) {
	name = cmp.Or(name, FromShell())
	if name == "" {
		name = h.Current()
	}
	if name != "" {
		return h.Environment(name)
	}

	switch names, err := h.Names(); {
	case err != nil:
		return Environment{}, err
	case len(names) == 1:
		return h.Environment(names[0])
	case len(names) > 1:
		return Environment{}, fmt.Errorf("no model given; the models are %s", strings.Join(names, ", "))
	}

	return Environment{}, fmt.Errorf("%w in %s", ErrNoEnvironment, h.Dir)
}

// Current returns the name of the current environment. It returns "" if there is none, or if the environment of
// that name no longer exists.
func (h Home) Current() string {
	data, err := os.ReadFile(filepath.Join(h.Dir, currentFile))
	if err != nil {
		return ""
	}

	name := strings.TrimSpace(string(data))
	if CheckName(name) != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(h.Path(name), recordFile)); err != nil {
		return ""
	}

	return name
}

// SetCurrent makes the named environment the current one. After SetCurrent(""), there is no current
// environment.
func (h Home) SetCurrent(name string) error {
	path := filepath.Join(h.Dir, currentFile)
	if name == "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot remove %q: %w", path, err)
		}

		return nil
	}

	if err := osutil.WriteFile(path, []byte(name+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}

	return nil
}

// FolderLock is the exclusive right to create, replace or remove the files of one environment. It is a lock on the
// environment's directory itself, so the lock ends with the process and leaves no file.
type FolderLock struct {
	dir *os.File
}

// Lock creates the environment's directory if it is missing, and locks it. It returns ErrBusy if another
// process has the lock.
func (h Home) Lock(name string) (*FolderLock, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}

	path := h.Path(name)
	for {
		// Other users can enter the directory, since a charm's programs may run as other users. They cannot list the
		// directory, and secret files have stricter modes.
		if err := osutil.MkdirAll(path, 0o711); err != nil {
			return nil, fmt.Errorf("cannot create the directory of model %q: %w", name, err)
		}

		lock, err := lockFolder(path)
		if err != nil {
			return nil, err
		}
		if lock != nil {
			return lock, nil
		}
		// A command that removes the environment has removed the directory before it was locked. Create it again.
	}
}

// lockFolder locks a directory. It returns nil without an error if the directory was removed in the meantime,
// and must be created again.
func lockFolder(path string) (*FolderLock, error) {
	dir, err := osutil.TryLockFile(path, os.O_RDONLY)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case errors.Is(err, osutil.ErrLocked):
		return nil, fmt.Errorf("cannot lock %q: %w", path, ErrBusy)
	case err != nil:
		return nil, fmt.Errorf("cannot lock %q: %w", path, err)
	}

	return &FolderLock{dir: dir}, nil
}

// Bootstrapped reports whether the directory already holds an environment.
func (l *FolderLock) Bootstrapped() bool {
	_, err := os.Stat(filepath.Join(l.dir.Name(), recordFile))
	return err == nil
}

// Clear removes everything in the directory, but not the directory itself. It removes environment.yaml last, and
// keeps it if another file cannot be removed. Until then the environment exists, so that the operator can repeat
// an interrupted removal.
func (l *FolderLock) Clear() error {
	entries, err := os.ReadDir(l.dir.Name())
	if err != nil {
		return fmt.Errorf("cannot list %q: %w", l.dir.Name(), err)
	}

	for _, e := range entries {
		if e.Name() != recordFile {
			err = errors.Join(err, removeAll(filepath.Join(l.dir.Name(), e.Name())))
		}
	}

	if err != nil {
		return fmt.Errorf("cannot clear %q: %w", l.dir.Name(), err)
	}

	return os.RemoveAll(filepath.Join(l.dir.Name(), recordFile))
}

// Remove clears the directory and removes it. The caller must still call Release.
func (l *FolderLock) Remove() error {
	if err := l.Clear(); err != nil {
		return err
	}
	if err := os.Remove(l.dir.Name()); err != nil {
		return fmt.Errorf("cannot remove %q: %w", l.dir.Name(), err)
	}

	return nil
}

// Release unlocks the directory.
func (l *FolderLock) Release() {
	// Close unlocks the directory even if it returns an error.
	_ = l.dir.Close()
}

// removeAll is like [os.RemoveAll], but also removes trees in which a charm has made directories read-only.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, os.ErrPermission) {
		return err
	}

	// Errors are ignored, since the removal below then fails again.
	_ = filepath.WalkDir(path, func(entryPath string, entry os.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(entryPath, 0o700)
		}
		return nil
	})

	return os.RemoveAll(path)
}
