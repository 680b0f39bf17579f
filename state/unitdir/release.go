package unitdir

import (
	"errors"
	"path/filepath"

	"bijou/state/osutil"
)

const (
	// Notes is the directory, in a unit's directory, that contains the symlinks to the unit's bound storage.
	Notes = "storage"
	// StorageDir is the directory, in a machine's directory, that contains the machine's storage.
	StorageDir = "storage"
)

// ReleaseUnit lazily unmounts all storage that is bound in the unit's directory, folder, and removes the notes of
// the storage that it has released. It must be called before that directory is removed, since the removal would
// otherwise also remove the storage's content. It continues after an error, and returns all errors.
func ReleaseUnit(folder string) error {
	notes, err := filepath.Glob(filepath.Join(folder, Notes, "*"))
	for _, note := range notes {
		err = errors.Join(err, osutil.ReleaseMount(note, osutil.Lazily))
	}
	return err
}

// ReleaseMachine lazily unmounts the storage of all units of a machine, and the machine's storage in memory.
// folder is the machine's directory. ReleaseMachine must be called before that directory is removed. It
// continues after an error, and returns all errors.
func ReleaseMachine(folder string) error {
	units, err := filepath.Glob(filepath.Join(folder, "agents", "*"))
	for _, unit := range units {
		err = errors.Join(err, ReleaseUnit(unit))
	}

	storageDirs, globErr := filepath.Glob(filepath.Join(folder, StorageDir, "*"))
	for _, dir := range storageDirs {
		err = errors.Join(err, osutil.Unmount(dir, osutil.Lazily))
	}

	return errors.Join(err, globErr)
}
