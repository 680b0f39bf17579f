// Package unitdir is the directory of a unit on its machine: its place, its lock, the charm in it,
// put there whole or not at all, the files that hooks have made beside the charm's, and the
// storage that is bound for the unit.
package unitdir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/charm"
	"bijou/state/osutil"
)

// Folder is the folder of one unit on its machine, agents/unit-SERVICE-N:
//
//	charm/       the charm, replaced as a whole but for what its hooks have made in it
//	charm.files  the manifest of the files that charms have brought
//	tools        a link to the hook tools of the agent that runs
//	hook.json    which process runs the hook in flight
//	hooks.log    what hooks have printed; hooks.log.1 is what came before
//	lock         held by the agent that runs the unit
//	hook.lock    held alone by that agent while a hook runs, else shared; see HookLock
//	storage/     a link for each storage that is bound for the unit, to where it is
//
// Whatever else is in it belongs to the charm, and outlives upgrades. units/SERVICE-N, where
// older binaries have it, is a link to it.
type Folder string

// Of returns the folder of a unit below its machine's.
func Of(machineDir, unit string) Folder {
	return Folder(filepath.Join(machineDir, "agents", "unit-"+strings.ReplaceAll(unit, "/", "-")))
}

// Legacy returns the path at which older binaries have the unit's directory. That path leads to it under
// every binary, since newer ones make it a link.
func (f Folder) Legacy() Folder {
	dir, name := filepath.Split(string(f))
	return Folder(filepath.Join(dir, "..", "units", strings.TrimPrefix(name, "unit-")))
}

// Path returns the path of a file in the folder.
func (f Folder) Path(name string) string { return filepath.Join(string(f), name) }

// ToolsPath returns where the link to the hook tools is.
func (f Folder) ToolsPath() string { return f.Path("tools") }

// ProcessPath returns the file that says which process runs the hook in flight.
func (f Folder) ProcessPath() string { return f.Path("hook.json") }

// Charm returns the folder of the charm.
func (f Folder) Charm() string { return f.Path("charm") }

// Log returns the file with all that the unit's hooks have said.
func (f Folder) Log() string { return f.Path("hooks.log") }

// Lock makes the unit's directory and locks it until the file is closed or the process ends. It waits while
// another agent holds the lock, and logs that once.
func (f Folder) Lock(ctx context.Context, log *slog.Logger) (*os.File, error) {
	for said := false; ; {
		lock, err := f.tryLock()
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, osutil.ErrLocked) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cannot lock the unit's folder %q: %w", f, err)
		}

		if !said {
			log.Warn("another agent runs this unit; waiting until it ends", "folder", string(f))
			said = true
		}

		if err := backoff.Sleep(ctx, 500*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// tryLock makes the folder, or moves it here from its legacy path, and locks it, unless the
// last holder of the lock has removed it.
func (f Folder) tryLock() (*os.File, error) {
	if err := f.moveFromLegacy(); err != nil {
		return nil, err
	}
	if err := osutil.MkdirAll(string(f), 0o755); err != nil {
		return nil, err
	}

	lock, err := f.tryLockFile()
	if err != nil {
		return nil, err
	}
	if err := f.linkFrom(string(f.Legacy())); err != nil {
		lock.Close()
		return nil, err
	}

	return lock, nil
}

func (f Folder) tryLockFile() (*os.File, error) {
	return osutil.TryLockFile(f.Path("lock"), os.O_CREATE|os.O_RDWR)
}

// LinkTools makes the directory's link to the hook tools point to tools.
func (f Folder) LinkTools(tools string) error {
	if now, err := os.Readlink(f.ToolsPath()); err == nil && now == tools {
		return nil
	}

	beside := f.ToolsPath() + ".new"
	_ = os.Remove(beside)
	err := os.Symlink(tools, beside)
	if err != nil {
		return fmt.Errorf("cannot link the hook tools: %w", err)
	}
	if err := os.Rename(beside, f.ToolsPath()); err != nil {
		return fmt.Errorf("cannot link the hook tools: %w", err)
	}

	return nil
}

// Remove removes the folder of a unit that is gone. It fails while an agent runs the unit.
func (f Folder) Remove() error {
	lock, err := f.tryLock()
	if err != nil {
		return fmt.Errorf("cannot lock the unit's folder %q: %w", f, err)
	}
	defer lock.Close()
	return f.RemoveAll()
}

// RemoveAll removes the unit's directory, and then the link to it. So no directory is ever left without its
// link.
func (f Folder) RemoveAll() error {
	if err := ReleaseUnit(string(f)); err != nil {
		return err
	}
	if err := os.RemoveAll(string(f)); err != nil {
		return err
	}

	return os.RemoveAll(string(f.Legacy()))
}

// moveFromLegacy moves the unit's directory here from the path of older binaries. It returns an error while
// an agent runs the unit there. It may be killed at any point and run again: the directory is at one of the
// two paths, and once it has moved both lead to it.
func (f Folder) moveFromLegacy() error {
	former := string(f.Legacy())
	info, err := os.Lstat(former)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}

	lock, err := f.Legacy().tryLockFile()
	if err != nil {
		return err
	}
	defer lock.Close()
	if info, err := os.Lstat(string(f)); err == nil && info.IsDir() {
		return fmt.Errorf("the unit has a second directory, %q: move away the one that is not the unit's", former)
	}

	// The link waits where the folder goes, so that they change places at once.
	if err := f.linkFrom(string(f)); err != nil {
		return err
	}

	err = unix.Renameat2(unix.AT_FDCWD, former, unix.AT_FDCWD, string(f), unix.RENAME_EXCHANGE)
	if err != nil { // a file system that cannot exchange
		err = f.replaceLinkBy(former)
	}
	if err != nil {
		return err
	}

	if err := osutil.SyncDir(filepath.Dir(string(f))); err != nil {
		return err
	}
	return osutil.SyncDir(filepath.Dir(former))
}

func (f Folder) replaceLinkBy(former string) error {
	if err := os.Remove(string(f)); err != nil {
		return err
	}
	return os.Rename(former, string(f))
}

// linkFrom makes path a link to the unit's directory. Older binaries find the directory at the legacy path,
// and hooks have written that path down.
func (f Folder) linkFrom(path string) error {
	if err := osutil.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}

	to := filepath.Join("..", filepath.Base(filepath.Dir(string(f))), filepath.Base(string(f)))
	if err := os.Symlink(to, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}

	return nil
}

// Storage is a storage on its machine: a folder, which a unit finds at Location.
type Storage struct {
	state.Storage
	Folder string // with what it holds
	Base   string // an operator's folder, which has Folder in it; empty: the machine's
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
	one := Storage{Storage: s, Folder: filepath.Join(machineDir, StorageDir, name)}
	if base, ok := strings.CutPrefix(s.Pool, charm.PoolHost+":"); ok {
		one.Base = base
		one.Folder = filepath.Join(base, environment+"-"+name)
	}
	one.Location = cmp.Or(s.Location, one.Folder)
	return one
}

// CheckFree returns an error if the storage's directory cannot be made: it has files already, or the
// directory of an operator's pool is missing.
func (s Storage) CheckFree() error {
	if err := checkThere(s.Base); err != nil && s.Base != "" {
		return err
	}

	empty, err := osutil.IsEmptyDir(s.Folder)
	if err != nil {
		return err
	}
	if !empty {
		return fmt.Errorf("%s has files that are not this storage's: move them away", s.Folder)
	}

	return nil
}

// RemoveAll removes the storage with all that it holds.
func (s Storage) RemoveAll() error {
	if err := checkThere(s.Base); err != nil && s.Base != "" {
		return err
	}
	return osutil.RemoveAll(s.Folder)
}

func checkThere(folder string) error {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("the folder %s is not there", folder)
	}
	return nil
}

func (f Folder) notePath(id string) string {
	return f.Path(filepath.Join(Notes, strings.ReplaceAll(id, "/", "-")))
}

// MissingStorage returns the ids of the unit's bound storages whose directories are missing. It skips
// memory, which nobody expects to last.
func (f Folder) MissingStorage(environment string, all []state.Storage) (ids []string) {
	for _, s := range all {
		goes := s.State == state.StorageDetaching || s.State == state.StorageUnbinding
		if !s.Bound || goes || s.Pool == charm.PoolTmpFS {
			continue
		}

		if checkThere(f.StorageOf(environment, s).Folder) != nil {
			ids = append(ids, s.ID)
		}
	}

	return ids
}

// BindStorage makes the storage's directory and binds it to its location in the unit. It may be repeated.
// If the directory was bound before and is missing, as when its disk is not mounted, it returns an error
// and does not make an empty one, unless the storage is memory.
func (f Folder) BindStorage(s Storage) error {
	if err := checkThere(s.Folder); err != nil && s.Bound && s.Pool != charm.PoolTmpFS {
		return err
	}
	if err := checkThere(s.Base); err != nil && s.Base != "" {
		return err
	}
	if err := osutil.MkdirAll(s.Folder, 0o755); err != nil {
		return err
	}

	if s.Pool == charm.PoolTmpFS {
		if err := osutil.MountTmpfs(s.Folder, s.Size); err != nil {
			return err
		}
	}

	if s.Location == s.Folder {
		return nil
	}

	note := f.notePath(s.ID)
	err := osutil.BindMount(s.Folder, s.Location, note, s.ReadOnly)
	if err == nil || isSameFolder(s.Folder, s.Location) {
		return err
	}

	// Another storage may be bound there: with the note, this one's release would take that away.
	if removeErr := os.Remove(note); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
		return errors.Join(err, removeErr)
	}

	return err
}

func isSameFolder(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(one, other)
}

// ReleaseStorage removes a storage from the place where the unit finds it, unless processes use it.
func (f Folder) ReleaseStorage(id string) error { return osutil.ReleaseMount(f.notePath(id), false) }
