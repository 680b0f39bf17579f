package unitfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"bijou/state/durable"
)

// moveFromLegacy moves the folder here from where an older binary has it. It fails while an
// agent runs the unit there. It may be killed anywhere and run again: the folder is at one
// place or the other, and both paths lead to it from the moment that it moves.
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
		return fmt.Errorf("the unit has another folder, %q: move away the one that is not the unit's", former)
	}
	// The link waits where the folder goes, so that they change places at once.
	if err := f.linkFrom(string(f)); err != nil {
		return err
	}
	err = unix.Renameat2(unix.AT_FDCWD, former, unix.AT_FDCWD, string(f), unix.RENAME_EXCHANGE)
	if err != nil { // a file system that cannot exchange
		err = errors.Join(os.Remove(string(f)), os.Rename(former, string(f)))
	}
	return errors.Join(err, durable.Sync(filepath.Dir(string(f))), durable.Sync(filepath.Dir(former)))
}

// linkFrom makes the legacy path a link to the folder: older binaries find it there, and
// hooks have written that path down.
func (f Folder) linkFrom(path string) error {
	if err := durable.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	to := filepath.Join("..", filepath.Base(filepath.Dir(string(f))), filepath.Base(string(f)))
	if err := os.Symlink(to, path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
