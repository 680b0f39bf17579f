// Package home is the operator's folder: BIJOU_HOME, the environments in it,
// and where each keeps what.
//
//	BIJOU_HOME/current                  the name of the environment in use
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
	"strings"

	"github.com/google/renameio/v2"

	"bijou/state/charm"
	"bijou/state/lazyregexp"
)

var (
	// ErrNoEnvironment means that there is no environment of that name, or none at all.
	ErrNoEnvironment = errors.New("there is no environment")
	// ErrRemoving means that the environment is being removed, so that no daemon may run for it.
	ErrRemoving = errors.New("it is being destroyed")
	// ErrBusy means that another process bootstraps or destroys that environment just now.
	ErrBusy = errors.New("another process is at work on it")
)

var namePattern = lazyregexp.New(`\A[A-Za-z0-9][A-Za-z0-9._-]{0,62}\z`)

// currentFile holds the name of the environment in use; no environment has its name.
const currentFile = "current"

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
		return Home{}, fmt.Errorf("cannot find the folder %q: %w", dir, err)
	}
	return Home{Dir: abs}, nil
}

// CheckName refuses what cannot be an environment's name: it becomes a folder,
// and a part of commands that operators copy.
func CheckName(name string) error {
	if name == currentFile || !namePattern.MatchString(name) {
		return charm.Invalidf("%q cannot name an environment: it takes letters, digits, '-', '_' and '.', a letter or digit first, 63 at most", name)
	}
	return nil
}

// Path is the folder of the environment of that name, whether it exists or not.
func (h Home) Path(name string) string { return filepath.Join(h.Dir, name) }

// Names lists the environments that were bootstrapped, sorted.
func (h Home) Names() ([]string, error) {
	entries, err := os.ReadDir(h.Dir) // no glob: the folder's own name may have * or [
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot list environments in %q: %w", h.Dir, err)
	}
	var names []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(h.Path(e.Name()), recordFile)); err == nil {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Choose returns the environment of that name; without one, $JUJU_ENV's, then
// the current one, then the only one there is.
func (h Home) Choose(name string) (Environment, error) {
	if name = cmp.Or(name, os.Getenv("JUJU_ENV")); name == "" {
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
		return Environment{}, fmt.Errorf("cannot choose an environment: there are %s", strings.Join(names, ", "))
	}
	return Environment{}, fmt.Errorf("%w in %s", ErrNoEnvironment, h.Dir)
}

// Current names the environment in use; "" if there is none (any more).
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
	if err := renameio.WriteFile(path, []byte(name+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return nil
}
