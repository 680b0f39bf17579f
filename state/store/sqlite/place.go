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

// place is a store's file: its absolute path, and which file that was.
//
// The file itself is never opened here, only asked about: closing any
// descriptor of it would drop all of SQLite's POSIX locks in this process.
type place struct {
	path string
	info fs.FileInfo
}

// findPlace finds the store's file and says clearly why it cannot be used.
func findPlace(path string) (place, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return place{}, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return place{}, store.ErrNoStore
	}
	if err != nil {
		return place{}, err
	}
	if !info.Mode().IsRegular() {
		return place{}, errors.New("it is not a regular file")
	}
	if err := unix.Access(path, unix.R_OK|unix.W_OK); err != nil {
		return place{}, fmt.Errorf("it cannot be read and written: %w", err)
	}
	return place{path, info}, nil
}

// same says if the path still leads to the file. As long as SQLite has that
// open, no other file can get its inode number. Its link count is 0 as soon as
// no path leads to it, so the path says it all.
func (p place) same() bool {
	now, err := os.Stat(p.path)
	return err == nil && os.SameFile(p.info, now)
}
