package osutil

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// MkdirAll does what os.MkdirAll does, and syncs the parent of each directory that it creates. It also syncs the
// parent of the deepest directory that already existed, since the process that created that directory may have
// been killed before it synced the parent.
func MkdirAll(path string, perm fs.FileMode) error {
	return mkdirAll(filepath.Clean(path), perm, SyncDir)
}

// Remove removes a file durably. It returns no error if the file does not exist. Even then it syncs the
// directory, since the process that removed the file may have been killed before its sync.
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

// SyncDir makes the current names in a directory durable, including removals.
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

// SyncFileSystem syncs the whole file system of a directory. For thousands of files this is faster than
// syncing each file.
func SyncFileSystem(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	err = unix.Syncfs(int(f.Fd()))
	return errors.Join(err, f.Close())
}

// mkdirAll creates a directory and its parents. It syncs after each directory, before it creates the next, so
// that only the last directory can be lost in a power loss.
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

	// Another process may have created the directory in the meantime.
	err := os.Mkdir(path, perm)
	if err != nil && !(errors.Is(err, fs.ErrExist) && isFolder(path)) {
		return err
	}

	return sync(parent)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isUnsyncable reports whether err says that a directory cannot be synced, because this process has no right
// to change it or it is not on a disk. In both cases this process has no changes to sync.
func isUnsyncable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EINVAL)
}

// RemoveAllBut removes everything in the directory except the entry keep. If keep is empty, it removes
// everything.
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
