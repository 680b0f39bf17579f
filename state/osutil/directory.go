package osutil

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// MkdirAll is os.MkdirAll, and syncs the parent of each folder that it makes. It
// syncs the parent of the first one that is there, too: the process that made it may have
// been killed before it synced.
func MkdirAll(path string, perm fs.FileMode) error {
	return mkdirAll(filepath.Clean(path), perm, SyncDir)
}

// Remove removes a file for good. It is no error if there is none: then it makes sure that none comes back,
// since a process that has removed it may have been killed before it synced.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	err := SyncDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) || isUnsyncable(err) {
		return nil
	}

	return err
}

// SyncDir makes the names in a folder durable, and the removal of others.
func SyncDir(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	err = f.Sync()
	return errors.Join(err, f.Close())
}

// SyncAll does what SyncDir does, for a directory and all directories below it. It does not sync files.
func SyncAll(folder string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return SyncDir(path)
	})
}

// SyncFileSystem makes all durable that is on the file system of a folder. Of thousands of files that is
// quicker than each by itself.
func SyncFileSystem(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	err = unix.Syncfs(int(f.Fd()))
	return errors.Join(err, f.Close())
}

// mkdirAll makes a directory and its parents. It syncs after each one, before it makes the next, so that
// only the last one can be lost in a loss of power.
func mkdirAll(path string, perm fs.FileMode, sync func(folder string) error) error {
	parent := filepath.Dir(path)
	if isFolder(path) {
		if err := sync(parent); err != nil && !isUnsyncable(err) {
			return err
		}
		return nil
	}

	if parent != path {
		if err := mkdirAll(parent, perm, sync); err != nil {
			return err
		}
	}

	err := os.Mkdir(path, perm)
	if errors.Is(err, fs.ErrExist) && isFolder(path) { // another process was quicker
		err = nil
	}
	if err != nil {
		return err
	}

	return sync(parent)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isUnsyncable reports whether err means that a directory cannot be synced, because this process may not
// change it or it is not on a disk. This process has then made nothing in it.
func isUnsyncable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EINVAL)
}

// RemoveAllBut empties the folder except for the entry of that name; "" keeps none.
func RemoveAllBut(dir, keep string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}

	for _, e := range entries {
		if e.Name() == keep {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}

	return nil
}
