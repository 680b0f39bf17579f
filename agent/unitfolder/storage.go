package unitfolder

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bijou/state"
	"bijou/state/bind"
	"bijou/state/charm"
	"bijou/state/durable"
)

// Storage is a storage on its machine: a folder, which a unit finds at a location of its own.
type Storage struct {
	ID       string
	Folder   string // with what it holds
	Base     string // an operator's folder, which has Folder in it; empty: the machine's
	Location string // Folder, or where that is bound
	ReadOnly bool
	TmpMiB   int64 // the size of the tmpfs that is mounted on Folder; 0: none is
	Bound    bool  // Folder has to be there: it was
}

// StorageOf returns where a storage of the unit is.
func (f Folder) StorageOf(environment string, s state.Storage) Storage {
	return StorageOf(f.machineDir(), environment, s)
}

func (f Folder) machineDir() string { return filepath.Dir(filepath.Dir(string(f))) }

// StorageOf returns where a storage is below its machine's folder, or, in a pool of the operator's,
// below that.
func StorageOf(machineDir, environment string, s state.Storage) Storage {
	name := strings.ReplaceAll(s.ID, "/", "-")
	one := Storage{ID: s.ID, Folder: filepath.Join(machineDir, bind.Storage, name), Location: s.Location, ReadOnly: s.ReadOnly, Bound: s.Bound}
	if base, ok := strings.CutPrefix(s.Pool, charm.PoolHost+":"); ok {
		one.Base, one.Folder = base, filepath.Join(base, environment+"-"+name)
	}
	if s.Pool == charm.PoolTmpFS {
		one.TmpMiB = s.Size
	}
	if one.Location == "" {
		one.Location = one.Folder
	}
	return one
}

// CheckFree returns why the storage's folder cannot be made: there is something already, or the folder
// that an operator's pool names is not there.
func (s Storage) CheckFree() error {
	if err := checkThere(s.Base); err != nil && s.Base != "" {
		return err
	}
	empty, err := bind.IsEmpty(s.Folder)
	if err == nil && !empty {
		err = fmt.Errorf("%s has files that are not this storage's: move them away", s.Folder)
	}
	return err
}

func checkThere(folder string) error {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("the folder %s is not there", folder)
	}
	return nil
}

func (f Folder) notePath(id string) string {
	return f.Path(filepath.Join(bind.Notes, strings.ReplaceAll(id, "/", "-")))
}

// BindStorage makes the storage's folder, and has the unit find it at its location. It does nothing
// where that is so. A folder that is gone, with a disk that is not mounted for one, is not made anew.
func (f Folder) BindStorage(s Storage) error {
	if err := checkThere(s.Folder); err != nil && s.Bound {
		return err
	}
	if err := durable.MkdirAll(s.Folder, 0o755); err != nil {
		return err
	}
	if s.TmpMiB > 0 {
		if err := bind.Tmpfs(s.Folder, s.TmpMiB); err != nil {
			return err
		}
	}
	if s.Location == s.Folder {
		return nil
	}
	return bind.Folder(s.Folder, s.Location, f.notePath(s.ID), s.ReadOnly)
}

// ReleaseStorage takes a storage away from where the unit finds it, unless processes use it.
func (f Folder) ReleaseStorage(id string) error { return bind.Release(f.notePath(id), false) }
