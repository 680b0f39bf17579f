// Package durable makes folders that are there after a loss of power, once their
// making has returned. A folder is a name in its parent, and lasts only when the
// parent was synced after the name was put there.
//
// What lies in the folders is their owners' care. It imports nothing of bijou; all
// may import it but hookenv, the stores and the pure packages.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// MkdirAll is os.MkdirAll, and syncs the parent of each folder that it makes. It
// syncs the parent of the first one that is there, too: whoever made that may have
// been killed before it came to it.
func MkdirAll(path string, perm fs.FileMode) error {
	return mkdirAll(filepath.Clean(path), perm, Sync)
}

// Sync makes the names that a folder holds last, and that others are gone from it.
func Sync(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SyncAll is Sync of a folder and of all folders below it. What is in the files is
// their writers' care.
func SyncAll(folder string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return Sync(path)
	})
}

// mkdirAll makes one folder after the other, and syncs before it makes the next: so
// at most the last one that is there was not synced.
func mkdirAll(path string, perm fs.FileMode, sync func(folder string) error) error {
	parent := filepath.Dir(path)
	if isFolder(path) {
		if err := sync(parent); err != nil && !othersCare(err) {
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

// othersCare says if a folder cannot be synced since it is none of ours to change,
// or not on a disk: what is in it was not made here.
func othersCare(err error) bool {
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
