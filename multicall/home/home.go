// Package home is the operator's folder: BIJOU_HOME, the environments in it,
// and where each keeps what.
//
//	BIJOU_HOME/current                  the name of the environment in use
//	BIJOU_HOME/.model-defaults.json     the configuration that new environments begin with
//	BIJOU_HOME/NAME/environment.yaml    what bootstrap chose; written last, so its presence is the environment's
//	BIJOU_HOME/NAME/state/state.db      the store, unless --state says otherwise
//	BIJOU_HOME/NAME/tools/VERSION-SHA8/ the binary and a link for each applet
//	BIJOU_HOME/NAME/machines/ID/        a local machine: agent.pid, agent.log, units/
//
// It knows no state and starts no process. multicall and multicall/juju import it.
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
	// ErrNoEnvironment means that there is no environment of that name, or none at all.
	ErrNoEnvironment = errors.New("there is no model")
	// ErrRemoving means that the environment is being removed, so that no daemon may run for it.
	ErrRemoving = errors.New("it is being destroyed")
	// ErrBusy means that another process bootstraps or destroys that environment just now.
	ErrBusy = errors.New("another process is at work on it")
)

var namePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._-]*\z`)
})

// currentFile holds the name of the environment in use; no environment has its name.
const currentFile = "current"

// defaultsFile begins as no environment's name does.
const defaultsFile = ".model-defaults.json"

// Home is one BIJOU_HOME.
type Home struct {
	Dir string // absolute
}

// Find returns BIJOU_HOME, or ~/.bijou without it. It makes nothing.
func Find() (Home, error) {
	dir := os.Getenv("BIJOU_HOME")
	if dir == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return Home{}, fmt.Errorf("cannot find a home folder (set BIJOU_HOME): %w", err)
		}
		dir = filepath.Join(user, ".bijou")
	}

	abs, err := filepath.Abs(dir)
	if err != nil {
		return Home{Dir: abs}, fmt.Errorf("cannot find the folder %q: %w", dir, err)
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

// Path returns the directory of the environment of that name, which need not exist.
func (h Home) Path(name string) string { return filepath.Join(h.Dir, name) }

// Names lists the environments that were bootstrapped, sorted.
func (h Home) Names() ([]string, error) {
	entries, err := os.ReadDir(h.Dir) // no glob: the folder's own name may have * or [
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

// Controller and Owner are in names of environments as Juju 3 writes them: bijou:admin/NAME. There are no
// controllers and no users: an environment belongs to whoever owns its directory.
const (
	Controller = "bijou"
	Owner      = "admin"
)

// EnvironmentName returns NAME of [[bijou]:][admin/]NAME, the form in which juju shows it to programs.
func EnvironmentName(model string) string {
	if controller, name, ok := strings.Cut(model, ":"); ok && (controller == Controller || controller == "") {
		model = name
	}
	return strings.TrimPrefix(model, Owner+"/")
}

// FromShell returns the environment that the shell's $JUJU_ENV names, or $JUJU_MODEL as Juju 3 has it; "" if
// neither is set.
func FromShell() string {
	return cmp.Or(os.Getenv("JUJU_ENV"), EnvironmentName(os.Getenv("JUJU_MODEL")))
}

// Choose returns the environment of that name; without one, the one that the shell names, then
// the current one, then the only one there is.
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
		return Environment{}, fmt.Errorf("no model given: there are %s", strings.Join(names, ", "))
	}

	return Environment{}, fmt.Errorf("%w in %s", ErrNoEnvironment, h.Dir)
}

// Current returns the name of the environment in use; "" if there is none.
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

// SetCurrent makes the named environment the one in use; "" means none.
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

// FolderLock is the right to make or remove one environment's folder. It is a lock
// on the folder itself, so it ends with the process and leaves no file.
type FolderLock struct {
	dir *os.File
}

// Lock makes the environment's directory if there is none, and locks it. It returns ErrBusy if another
// process has the lock.
func (h Home) Lock(name string) (*FolderLock, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}

	path := h.Path(name)
	for {
		// Others may pass through, so that what a charm runs as another user finds
		// the charm, but not look around; what is secret has modes of its own.
		if err := osutil.MkdirAll(path, 0o711); err != nil {
			return nil, fmt.Errorf("cannot make the directory of model %q: %w", name, err)
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

// Bootstrapped reports whether the folder holds an environment already.
func (l *FolderLock) Bootstrapped() bool {
	_, err := os.Stat(filepath.Join(l.dir.Name(), recordFile))
	return err == nil
}

// Clear removes all files of the directory, but not the directory. environment.yaml goes last: until then
// the environment exists, and its removal can be repeated.
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
func (l *FolderLock) Release() {
	_ = l.dir.Close()
}

// removeAll does what os.RemoveAll does, also for trees in which a charm has made directories read-only.
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
