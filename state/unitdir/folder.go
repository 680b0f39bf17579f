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
//	charm/       the charm; replaced as a whole, except for files that its hooks have made
//	charm.files  the list of the files that came with charms
//	tools        a symlink to the hook tools of the running agent
//	hook.json    the process of the running hook
//	hooks.log    the output of hooks; hooks.log.1 is older output
//	lock         locked by the agent that runs the unit
//	hook.lock    locked by that agent, exclusively while a hook runs; see HookLock
//	storage/     for each bound storage, a symlink to its location
//
// Other files belong to the charm, and are kept by upgrades. units/SERVICE-N, the path in older binaries, is
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

// Lock creates the unit's directory and locks it until the returned file is closed or the process ends. It
// waits while another agent holds the lock, and logs that once.
func (f Folder) Lock(ctx context.Context, log *slog.Logger) (*os.File, error) {
	for said := false; ; {
		lock, err := f.tryLock()
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, osutil.ErrLocked) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cannot lock the unit's directory %q: %w", f, err)
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

// tryLock creates the directory, or moves it here from its legacy path, and locks it. It returns
// [osutil.ErrLocked] if another process has the lock. It returns [fs.ErrNotExist] if the last holder of the
// lock has just removed the directory.
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

// LinkTools makes the directory's symlink to the hook tools point to tools.
func (f Folder) LinkTools(tools string) error {
	if now, err := os.Readlink(f.ToolsPath()); err == nil && now == tools {
		return nil
	}

	// An earlier call may have been killed before it renamed its link. If none was, Remove fails.
	beside := f.ToolsPath() + ".new"
	_ = os.Remove(beside)
	if err := os.Symlink(tools, beside); err != nil {
		return fmt.Errorf("cannot link the hook tools: %w", err)
	}
	if err := os.Rename(beside, f.ToolsPath()); err != nil {
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

// RemoveAll removes the unit's directory, and then the symlink to it. In this order, an interruption cannot
// leave a directory without its symlink.
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
// an agent runs the unit there. It can be killed at any point and run again, since the directory is always at
// one of the two paths. The legacy path becomes a symlink. On a file system that cannot exchange the two, the
// caller must make that symlink.
func (f Folder) moveFromLegacy() error {
	former := string(f.Legacy())
	info, err := os.Lstat(former)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		// It is the symlink of an earlier move.
		return nil
	}

	lock, err := f.Legacy().tryLockFile()
	if err != nil {
		return err
	}
	defer lock.Close()
	if info, err := os.Lstat(string(f)); err == nil && info.IsDir() {
		return fmt.Errorf("the unit has a second directory, %q: move the wrong one away", former)
	}

	// Make the symlink at the new path first. It points to its own path, until it changes places with the
	// directory in one step.
	if err := f.linkFrom(string(f)); err != nil {
		return err
	}

	if err := f.exchangeLinkFor(former); err != nil {
		return err
	}
	if err := osutil.SyncDir(filepath.Dir(string(f))); err != nil {
		return err
	}
	return osutil.SyncDir(filepath.Dir(former))
}

// exchangeLinkFor exchanges the symlink at f with the directory former. On a file system that cannot exchange
// them, it removes the symlink and moves the directory.
func (f Folder) exchangeLinkFor(former string) error {
	err := unix.Renameat2(unix.AT_FDCWD, former, unix.AT_FDCWD, string(f), unix.RENAME_EXCHANGE)
	if err == nil {
		return nil
	}

	if err := os.Remove(string(f)); err != nil {
		return err
	}
	return os.Rename(former, string(f))
}

// linkFrom makes path a symlink to the unit's directory. It does nothing if path exists. Older binaries need
// the legacy path, and so do hooks that have recorded it.
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

// Storage is a storage on its machine. A unit finds it at Location.
type Storage struct {
	state.Storage
	Folder string // the directory with the content
	Base   string // the operator's directory that has Folder in it; empty if Folder is in the machine's directory
}

// StorageOf returns the storage of the unit with its paths.
func (f Folder) StorageOf(environment string, s state.Storage) Storage {
	return StorageOf(f.machineDir(), environment, s)
}

func (f Folder) machineDir() string { return filepath.Dir(filepath.Dir(string(f))) }

// StorageOf returns the storage with its paths. Its directory is in the machine's directory, or in the
// operator's directory that the pool names.
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
	return checkThere(s.Base)
}

// checkThere returns an error unless the path leads to a directory.
func checkThere(folder string) error {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("the directory %s does not exist", folder)
	}
	return nil
}

// notePath returns the path of the symlink to a bound storage's location.
func (f Folder) notePath(id string) string {
	return f.Path(filepath.Join(Notes, strings.ReplaceAll(id, "/", "-")))
}

// MissingStorage returns the ids of the unit's bound storages whose directories are missing. It ignores
// storage that is being detached, and storage in memory, which does not survive a restart.
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

// BindStorage creates the storage's directory and binds it to its location. It can be repeated. If the
// directory was bound before and is missing, for example because its disk is not mounted, BindStorage returns
// an error instead of creating an empty directory. This does not apply to storage in memory.
func (f Folder) BindStorage(s Storage) error {
	isMemory := s.Pool == charm.PoolTmpFS
	if s.Bound && !isMemory {
		if err := checkThere(s.Folder); err != nil {
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

	if s.Location == s.Folder {
		return nil
	}
	note := f.notePath(s.ID)
	err := osutil.BindMount(s.Folder, s.Location, note, s.ReadOnly)
	if err == nil || isSameFolder(s.Folder, s.Location) {
		return err
	}

	// Another storage may be bound at the location. If the note stayed, a release of this storage would
	// unmount the other one.
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

// ReleaseStorage unmounts a storage from its location. It returns an error if processes use it.
func (f Folder) ReleaseStorage(id string) error {
	return osutil.ReleaseMount(f.notePath(id), osutil.IfUnused)
}
