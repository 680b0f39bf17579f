package unitdir

import (
	"errors"
	"path/filepath"

	"bijou/state/osutil"
)

const (
	// Notes is the directory in a unit's directory that has the symlinks to its bound storage.
	Notes = "storage"
	// StorageDir is the directory in a machine's directory that has its storage.
	StorageDir = "storage"
)

// ReleaseUnit lazily unmounts all storage that is bound in the unit's directory. It must be called before the
// directory is removed, since the removal would otherwise also remove the storage's content.
func ReleaseUnit(folder string) error {
	notes, err := filepath.Glob(filepath.Join(folder, Notes, "*"))
	for _, note := range notes {
		err = errors.Join(err, osutil.ReleaseMount(note, osutil.Lazily))
	}
	return err
}

// ReleaseMachine lazily unmounts the storage of all units of a machine, and the machine's storage in memory.
// It must be called before the machine's directory is removed.
func ReleaseMachine(folder string) error {
	units, err := filepath.Glob(filepath.Join(folder, "agents", "*"))
	for _, unit := range units {
		err = errors.Join(err, ReleaseUnit(unit))
	}
	made, globErr := filepath.Glob(filepath.Join(folder, StorageDir, "*"))
	for _, one := range made {
		err = errors.Join(err, osutil.Unmount(one, osutil.Lazily))
	}

	return errors.Join(err, globErr)
}
