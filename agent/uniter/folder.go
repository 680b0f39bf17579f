package uniter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bijou/state/backoff"
	"bijou/state/durable"
	"bijou/state/filelock"
)

// Folder is the folder of one unit on its machine, agents/unit-SERVICE-N:
//
//	charm/       the charm, replaced as a whole but for what its hooks have made in it
//	charm.files  the manifest of the files that charms have brought
//	tools        a link to the hook tools of the agent that runs
//	hook.json    which process runs the hook in flight
//	hooks.log    what hooks have printed; hooks.log.1 is what came before
//	lock         held by the agent that runs the unit
//
// Whatever else is in it belongs to the charm, and outlives upgrades. units/SERVICE-N, where
// older binaries have it, is a link to it.
type Folder string

// FolderOf is the folder of a unit below its machine's.
func FolderOf(machineDir, unit string) Folder {
	return Folder(filepath.Join(machineDir, "agents", "unit-"+strings.ReplaceAll(unit, "/", "-")))
}

// Legacy is where older binaries have the folder: a path by which it is reached whichever
// binary the unit's agent runs.
func (f Folder) Legacy() Folder {
	dir, name := filepath.Split(string(f))
	return Folder(filepath.Join(dir, "..", "units", strings.TrimPrefix(name, "unit-")))
}

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }
func (f Folder) toolsPath() string       { return f.path("tools") }
func (f Folder) processPath() string     { return f.path("hook.json") }

// Charm is the folder of the charm.
func (f Folder) Charm() string { return f.path("charm") }

// Log is the file with all that the unit's hooks have said.
func (f Folder) Log() string { return f.path("hooks.log") }

// Lock makes the folder and locks it until the file is closed or the process ends. It
// blocks while another agent holds the lock, which it logs once.
func (f Folder) Lock(ctx context.Context, log *slog.Logger) (*os.File, error) {
	for said := false; ; {
		lock, err := f.tryLock()
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, filelock.ErrLocked) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cannot lock the unit's folder %q: %w", f, err)
		}
		if !said {
			log.Warn("another agent runs this unit; waiting for its end", "folder", string(f))
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
	if err := durable.MkdirAll(string(f), 0o755); err != nil {
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
	return filelock.TryLock(f.path("lock"), os.O_CREATE|os.O_RDWR)
}

func (f Folder) linkTools(tools string) error {
	if now, err := os.Readlink(f.toolsPath()); err == nil && now == tools {
		return nil
	}
	beside := f.toolsPath() + ".new"
	_ = os.Remove(beside)
	if err := os.Symlink(tools, beside); err != nil {
		return fmt.Errorf("cannot link the hook tools: %w", err)
	}
	if err := os.Rename(beside, f.toolsPath()); err != nil {
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
	return f.removeAll()
}

// removeAll removes the folder before the link to it, so that a folder is never left
// without its link.
func (f Folder) removeAll() error {
	if err := os.RemoveAll(string(f)); err != nil {
		return err
	}
	return os.RemoveAll(string(f.Legacy()))
}
