// Package systemd writes the unit files of an environment, calls systemctl, and
// finds the service that a process belongs to.
//
// It is not for daemons, which notify systemd by multicall's serviceNotifier. It
// imports of bijou multicall/home only, and multicall alone imports it.
package systemd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"bijou/multicall/home"
	"bijou/state/wrap"
)

// Dir is where an operator's unit files are.
const Dir = "/etc/systemd/system"

// ErrForeign means that a file of that name was not made by bijou for this environment.
var ErrForeign = errors.New("it is not of this environment")

// Install writes the unit file into the folder by rename, and reports whether that changed
// anything. A file that bijou has not made for the environment in env is ErrForeign,
// unless force replaces it.
func Install(dir string, u Unit, env string, force bool) (changed bool, err error) {
	path := filepath.Join(dir, u.Name)
	old, err := os.ReadFile(path)
	switch {
	case err == nil && string(old) == u.Text:
		return false, nil
	case err == nil && !force && !isMadeFor(string(old), env):
		return false, fmt.Errorf("cannot write %q: %w", path, ErrForeign)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("cannot read %q: %w", path, err)
	}
	err = renameio.WriteFile(path, []byte(u.Text), 0o644, renameio.IgnoreUmask())
	return true, wrap.Error(err, "cannot write %q", path)
}

// RemoveEnvironment ends and disables what Install has written into Dir for an environment
// that is to go, and removes it.
func RemoveEnvironment(e home.Environment) error {
	units, err := Units(e)
	if err == nil {
		_, err = Remove(Dir, units, e.Dir)
	}
	return err
}

// Remove removes unit files that bijou has made for the owner, and returns the names of those that
// were there; what is another owner's is left alone. Those in Dir it ends and disables first.
func Remove(dir string, units []Unit, owner string) (removed []string, err error) {
	running := dir == Dir && IsRunning()
	for _, u := range units {
		path := filepath.Join(dir, u.Name)
		text, err := os.ReadFile(path)
		if err != nil || !isMadeFor(string(text), owner) {
			continue
		}
		if running {
			_, _ = systemctl("disable", "--now", "--quiet", u.Name) // of a template nothing is enabled, and nothing runs
		}
		if err := os.Remove(path); err != nil {
			return removed, fmt.Errorf("cannot remove the unit file: %w", err)
		}
		removed = append(removed, u.Name)
	}
	if len(removed) == 0 || !running {
		return removed, nil
	}
	// One that was started again in between found no environment, and failed.
	for _, name := range removed {
		_, _ = systemctl("reset-failed", name)
	}
	return removed, Reload()
}

// ReadUnitFiles returns the texts of all of bijou's unit files in Dir, one after the other.
func ReadUnitFiles() string {
	files, _ := filepath.Glob(filepath.Join(Dir, "bijou-*.service"))
	var all strings.Builder
	for _, f := range files {
		text, _ := os.ReadFile(f)
		all.Write(text)
	}
	return all.String()
}

// NecoOwner is the owner in neco's unit files, where those of an environment have its folder.
const NecoOwner = "neco"

// NecoUnits makes the unit files of neco's daemons, which lie in the folder bin.
func NecoUnits(bin string) ([]Unit, error) {
	all, err := parseTemplates(bin)
	if err != nil {
		return nil, err
	}
	var units []Unit
	for _, d := range []struct{ name, does string }{
		{"neco-worker", "brings this boot server to new releases"},
		{"neco-updater", "looks for releases, and leads boot servers to them"},
	} {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, "neco.service", map[string]any{"Mark": madeByPrefix, "Owner": NecoOwner, "Does": d.does, "Program": filepath.Join(bin, d.name)})
		if err != nil {
			return nil, fmt.Errorf("cannot make the unit file of %s: %w", d.name, err)
		}
		units = append(units, Unit{Name: d.name + ".service", Text: text.String()})
	}
	return units, nil
}
