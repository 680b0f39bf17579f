package osutil

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// MkdirAll does what os.MkdirAll does, and syncs the parent of each directory that it creates. It also syncs the
// parent of the deepest directory that already existed, since the process that created that directory may have
// been killed before it synced the parent.
func MkdirAll(path string, perm fs.FileMode) error {
	return mkdirAll(filepath.Clean(path), perm, SyncDir)
}

// Remove removes a file durably. If the file does not exist, Remove returns no error, but still syncs the
// directory, since the process that removed the file may have been killed before it synced the directory.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	// If the directory is gone, so is the file. For a directory that cannot be synced, see isUnsyncable.
	err := SyncDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) || isUnsyncable(err) {
		return nil
	}

	return err
}

// mkdirAll creates a directory and its parents. After it has created a directory, it syncs the parent before
// it creates the next directory. So a power loss during the call can remove only the directory that was created
// last. sync is SyncDir, except in tests.
func mkdirAll(path string, perm fs.FileMode, sync func(folder string) error) error {
	parent := filepath.Dir(path)
	if isFolder(path) {
		// An earlier call may have created the directory, and may have ended before the sync.
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
	// Another process may have created the directory in the meantime.
	existsNow := errors.Is(err, fs.ErrExist) && isFolder(path)
	if err != nil && !existsNow {
		return err
	}

	return sync(parent)
}

// isFolder reports whether the path leads to a directory.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isUnsyncable reports whether err says that a directory cannot be synced. The reason is that this process
// has no right to change the directory, or that the directory is not on a disk. In both cases this process
// has no changes to sync.
func isUnsyncable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EINVAL)
}

// RemoveAllBut removes the content of the directory except the entry called keep. If keep is empty, it
// removes the whole content. The directory itself stays.
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
