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

// ReleaseUnit releases, lazily, all that is bound for a unit, by its folder. Nothing of that may
// be removed before, lest what its storage holds goes with it.
func ReleaseUnit(folder string) error {
	notes, err := filepath.Glob(filepath.Join(folder, Notes, "*"))
	for _, note := range notes {
		err = errors.Join(err, osutil.ReleaseMount(note, true))
	}
	return err
}

// ReleaseMachine is ReleaseUnit for all units of a machine, by its folder, which is about to be
// removed.
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
