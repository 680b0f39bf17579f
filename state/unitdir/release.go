package unitdir

import (
	"errors"
	"path/filepath"

	"bijou/state/osutil"
)

// Notes is the folder of a unit's notes, below the unit's own; StorageDir is that of a machine's
// storage, below the machine's.
const (
	Notes      = "storage"
	StorageDir = "storage"
)

// ReleaseUnit unmounts all storage that is bound in the unit's directory, lazily. Call it before any of the
// directory is removed, since removal would go on into the storage.
func ReleaseUnit(folder string) error {
	notes, err := filepath.Glob(filepath.Join(folder, Notes, "*"))
	for _, note := range notes {
		err = errors.Join(err, osutil.ReleaseMount(note, true))
	}
	return err
}

// ReleaseMachine unmounts the storage of all units of a machine, and the machine's own memory storage. Call
// it before the machine's directory is removed.
func ReleaseMachine(folder string) error {
	units, err := filepath.Glob(filepath.Join(folder, "agents", "*"))
	for _, unit := range units {
		err = errors.Join(err, ReleaseUnit(unit))
	}
	made, globErr := filepath.Glob(filepath.Join(folder, StorageDir, "*"))
	for _, one := range made {
		err = errors.Join(err, osutil.Unmount(one, true))
	}

	return errors.Join(err, globErr)
}
