// Package unitdir manages the directory of a unit on its machine: its path and locks, the charm in it, the
// files that hooks have created, and the storage that is bound for the unit.
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

// Folder is the directory of a unit on its machine, agents/unit-SERVICE-N:
//
//	charm/       the charm; replaced as a whole, except for files that hooks have created
//	charm.files  the list of the files that came with charms
//	tools        a symlink to the hook tools of the running agent
//	hook.json    the process of the running hook
//	hooks.log    the output of hooks; hooks.log.1 is older output
//	lock         locked by the agent that runs the unit
//	hook.lock    locked by that agent, exclusively while a hook runs; see HookLock
//	storage/     for each bound storage, a symlink to its location
//
// Upgrades keep all other files, which belong to the charm. units/SERVICE-N, the path in older binaries, is
// a symlink to the directory.
type Folder string

// Of returns the directory of a unit below its machine's directory.
func Of(machineDir, unit string) Folder {
	return Folder(filepath.Join(machineDir, "agents", "unit-"+strings.ReplaceAll(unit, "/", "-")))
}

// Legacy returns the path of the unit's directory in older binaries. The path is valid with every binary,
// since newer binaries make it a symlink.
func (f Folder) Legacy() Folder {
	dir, name := filepath.Split(string(f))
	return Folder(filepath.Join(dir, "..", "units", strings.TrimPrefix(name, "unit-")))
}

// Path returns the path of a file in the directory.
func (f Folder) Path(name string) string { return filepath.Join(string(f), name) }

// ToolsPath returns the path of the symlink to the hook tools.
func (f Folder) ToolsPath() string { return f.Path("tools") }

// ProcessPath returns the path of the file that records the running hook's process.
func (f Folder) ProcessPath() string { return f.Path("hook.json") }

// Charm returns the path of the charm's directory.
func (f Folder) Charm() string { return f.Path("charm") }

// Log returns the path of the file with the output of the unit's hooks.
func (f Folder) Log() string { return f.Path("hooks.log") }

// Lock creates the unit's directory, or moves it from its legacy path, and locks it until the returned file is
// closed or the process ends. While another process holds the lock, or has just removed the directory, Lock
// waits, and logs once that another agent runs the unit. It returns ctx's error if ctx is done while it waits.
func (f Folder) Lock(ctx context.Context, log *slog.Logger) (*os.File, error) {
	logged := false
	for {
		lock, err := f.tryLock()
		if err == nil {
			return lock, nil
		}
		// ErrNotExist means that the last agent has just removed the directory.
		canRetry := errors.Is(err, osutil.ErrLocked) || errors.Is(err, fs.ErrNotExist)
		if !canRetry {
			return nil, fmt.Errorf("cannot lock the unit's directory %q: %w", f, err)
		}

		if !logged {
			log.Warn("another agent runs this unit; waiting until it ends", "folder", string(f))
			logged = true
		}

		if err := backoff.Sleep(ctx, 500*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// tryLock creates the directory, or moves it here from its legacy path, and locks it. It also creates the symlink
// at the legacy path if it is missing. It returns [osutil.ErrLocked] if another process has the lock. It returns
// [fs.ErrNotExist] if the last holder of the lock has just removed the directory.
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

// tryLockFile locks the directory's file that is called lock. It returns [osutil.ErrLocked] if another
// process has the lock.
func (f Folder) tryLockFile() (*os.File, error) {
	return osutil.TryLockFile(f.Path("lock"), os.O_CREATE|os.O_RDWR)
}

// LinkTools makes the directory's symlink to the hook tools lead to the path tools.
func (f Folder) LinkTools(tools string) error {
	if current, err := os.Readlink(f.ToolsPath()); err == nil && current == tools {
		return nil
	}

	// Rename replaces the old symlink in one step.
	newLink := f.ToolsPath() + ".new"
	// Remove fails unless an interrupted call has left its new symlink behind.
	_ = os.Remove(newLink)
	if err := os.Symlink(tools, newLink); err != nil {
		return fmt.Errorf("cannot link the hook tools: %w", err)
	}
	if err := os.Rename(newLink, f.ToolsPath()); err != nil {
		return fmt.Errorf("cannot link the hook tools: %w", err)
	}

	return nil
}

// Remove removes the directory of a unit that is gone. It returns an error while an agent runs the unit.
func (f Folder) Remove() error {
	lock, err := f.tryLock()
	if err != nil {
		return fmt.Errorf("cannot lock the unit's directory %q: %w", f, err)
	}
	defer lock.Close()
	return f.RemoveAll()
}

// RemoveAll releases the unit's storage, and then removes the unit's directory and the symlink at the legacy
// path. In this order, an interruption cannot leave a directory without its symlink.
func (f Folder) RemoveAll() error {
	if err := ReleaseUnit(string(f)); err != nil {
		return err
	}
	if err := os.RemoveAll(string(f)); err != nil {
		return err
	}

	return os.RemoveAll(string(f.Legacy()))
}

// moveFromLegacy moves the unit's directory from the legacy path to f, and makes the legacy path a symlink.
// It does nothing if there is no directory at the legacy path. It returns an error while an agent runs the
// unit there, or if both paths are directories. It can be killed at any point and run again, since the
// directory is always at one of the two paths. On some file systems it does not create the symlink, so the
// caller must create a missing symlink.
func (f Folder) moveFromLegacy() error {
	legacy := string(f.Legacy())
	info, err := os.Lstat(legacy)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return nil // the symlink of an earlier move
	}

	lock, err := f.Legacy().tryLockFile()
	if err != nil {
		return err
	}
	defer lock.Close()
	if info, err := os.Lstat(string(f)); err == nil && info.IsDir() {
		return fmt.Errorf("the unit has two directories, %q and %q: move the wrong directory away", string(f), legacy)
	}

	// Create the symlink at the new path first, where it points to itself. Then the symlink and the directory
	// change places in one step.
	if err := f.linkFrom(string(f)); err != nil {
		return err
	}
	if err := f.exchangeLinkFor(legacy); err != nil {
		return err
	}
	if err := osutil.SyncDir(filepath.Dir(string(f))); err != nil {
		return err
	}
	return osutil.SyncDir(filepath.Dir(legacy))
}

// exchangeLinkFor exchanges the symlink at f with the directory legacy. If that fails, most likely since the
// file system cannot exchange them, it removes the symlink and moves the directory.
func (f Folder) exchangeLinkFor(legacy string) error {
	err := unix.Renameat2(unix.AT_FDCWD, legacy, unix.AT_FDCWD, string(f), unix.RENAME_EXCHANGE)
	if err == nil {
		return nil
	}

	if err := os.Remove(string(f)); err != nil {
		return err
	}
	return os.Rename(legacy, string(f))
}

// linkFrom makes path a relative symlink to the unit's directory, ../agents/unit-SERVICE-N. It does nothing
// if path exists. Older binaries need such a symlink at the legacy path. Hooks that have recorded that path
// also need it.
func (f Folder) linkFrom(path string) error {
	if err := osutil.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}

	target := filepath.Join("..", filepath.Base(filepath.Dir(string(f))), filepath.Base(string(f)))
	if err := os.Symlink(target, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}

	return nil
}

// Storage is a storage on its machine. A unit finds the storage's content at Location.
type Storage struct {
	state.Storage
	Folder string // the directory with the content
	Base   string // the operator's directory that contains Folder; empty if Folder is in the machine's directory
}

// StorageOf returns the unit's storage s with the paths of its directories.
func (f Folder) StorageOf(environment string, s state.Storage) Storage {
	return StorageOf(f.machineDir(), environment, s)
}

// machineDir returns the machine's directory, which contains agents/unit-SERVICE-N.
func (f Folder) machineDir() string { return filepath.Dir(filepath.Dir(string(f))) }

// StorageOf returns storage s with its Folder, Base and Location. Folder is in the machine's directory, or in the
// operator's directory that the pool names, as in host:/srv. Location is that of s or, if s has none, Folder.
// environment is the environment's name.
func StorageOf(machineDir, environment string, s state.Storage) Storage {
	name := strings.ReplaceAll(s.ID, "/", "-")
	located := Storage{Storage: s, Folder: filepath.Join(machineDir, StorageDir, name)}
	if base, ok := strings.CutPrefix(s.Pool, charm.PoolHost+":"); ok {
		located.Base = base
		located.Folder = filepath.Join(base, environment+"-"+name)
	}

	located.Location = cmp.Or(s.Location, located.Folder)
	return located
}

// CheckFree returns an error unless the storage's directory is empty or missing. For a storage in an
// operator's directory, it also returns an error if s.Base is missing.
func (s Storage) CheckFree() error {
	if err := s.checkBase(); err != nil {
		return err
	}

	empty, err := osutil.IsEmptyDir(s.Folder)
	if err != nil {
		return err
	}
	if !empty {
		return fmt.Errorf("%s contains files that do not belong to this storage: move these files away", s.Folder)
	}

	return nil
}

// RemoveAll removes the storage with its content. For a storage in an operator's directory, it returns an
// error if s.Base is missing.
func (s Storage) RemoveAll() error {
	if err := s.checkBase(); err != nil {
		return err
	}
	return osutil.RemoveAll(s.Folder)
}

// checkBase returns an error if the storage is in an operator's directory that is missing.
func (s Storage) checkBase() error {
	if s.Base == "" {
		return nil
	}
	return checkDirExists(s.Base)
}

// checkDirExists returns an error unless the path leads to a directory.
func checkDirExists(folder string) error {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("the directory %s does not exist", folder)
	}
	return nil
}

// notePath returns the path of the symlink to a bound storage's location. The symlink notes where the storage
// is mounted, and remains until the storage is released.
func (f Folder) notePath(id string) string {
	return f.Path(filepath.Join(Notes, strings.ReplaceAll(id, "/", "-")))
}

// MissingStorage returns the ids of the unit's bound storages whose directories are missing. It ignores
// storage that is being detached, and storage in memory, which does not survive a restart.
func (f Folder) MissingStorage(environment string, storages []state.Storage) (ids []string) {
	for _, s := range storages {
		isMemory := s.Pool == charm.PoolTmpFS
		isDetaching := s.State == state.StorageDetaching || s.State == state.StorageUnbinding
		if !s.Bound || isDetaching || isMemory {
			continue
		}

		if err := checkDirExists(f.StorageOf(environment, s).Folder); err != nil {
			ids = append(ids, s.ID)
		}
	}

	return ids
}

// BindStorage creates the storage's directory and makes it visible at the storage's location. It is idempotent.
// If the storage was bound before and its directory is missing, for example because its disk is not mounted,
// BindStorage returns an error instead of creating an empty directory. For storage in memory it creates the
// directory again. For a storage in an operator's directory, it also returns an error if s.Base is missing.
func (f Folder) BindStorage(s Storage) error {
	isMemory := s.Pool == charm.PoolTmpFS
	if s.Bound && !isMemory {
		if err := checkDirExists(s.Folder); err != nil {
			return err
		}
	}
	if err := s.checkBase(); err != nil {
		return err
	}

	if err := osutil.MkdirAll(s.Folder, 0o755); err != nil {
		return err
	}
	if isMemory {
		if err := osutil.MountTmpfs(s.Folder, s.Size); err != nil {
			return err
		}
	}

	if s.Location == s.Folder { // the unit finds the content in the storage's own directory
		return nil
	}
	note := f.notePath(s.ID) // BindMount records the location there
	err := osutil.BindMount(s.Folder, s.Location, note, s.ReadOnly)
	if err == nil {
		return nil
	}
	// The storage is bound in spite of the error. The note stays, and makes a release of this storage unmount the
	// location.
	if isSameFolder(s.Folder, s.Location) {
		return err
	}

	// BindMount could not release a former location, to which the note still leads.
	if recorded, readErr := os.Readlink(note); readErr == nil && recorded != s.Location {
		return err
	}

	// Another storage may be bound at the location. If the note stayed, a release of this storage would
	// unmount the other storage.
	if removeErr := os.Remove(note); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
		return errors.Join(err, removeErr)
	}

	return err
}

// isSameFolder reports whether both paths exist and lead to the same directory, for example through a bind
// mount.
func isSameFolder(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// ReleaseStorage unmounts a storage from its location. It returns an error if processes use the storage.
func (f Folder) ReleaseStorage(id string) error {
	return osutil.ReleaseMount(f.notePath(id), osutil.IfUnused)
}
