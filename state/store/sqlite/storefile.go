package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"bijou/state/store"
)

// storeFile is a store's absolute path, and which file was there when it was opened.
//
// The file itself is never opened here: closing any descriptor of it would drop all
// of SQLite's POSIX locks in this process.
type storeFile struct {
	path string
	info fs.FileInfo
}

func findStoreFile(path string) (storeFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return storeFile{}, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return storeFile{}, store.ErrNoStore
	}
	if err != nil {
		return storeFile{}, err
	}
	if !info.Mode().IsRegular() {
		return storeFile{}, errors.New("it is not a regular file")
	}
	if err := unix.Access(path, unix.R_OK|unix.W_OK); err != nil {
		return storeFile{}, fmt.Errorf("it cannot be read and written: %w", err)
	}
	return storeFile{path, info}, nil
}

// isUnchanged reports whether the path still leads to the file. As long as SQLite has that
// open, no other file can get its inode number. Its link count is 0 as soon as no path
// leads to it, so that looking at the path is enough.
func (f storeFile) isUnchanged() bool {
	now, err := os.Stat(f.path)
	return err == nil && os.SameFile(f.info, now)
}
