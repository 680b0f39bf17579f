package juju

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// storeFile is the file of a SQLite store; "" for stores that are no files.
func storeFile(url string) string {
	path, ok := strings.CutPrefix(url, "sqlite:")
	if !ok {
		return ""
	}
	return path
}

// storeExists tells if the store's file was there before bootstrap.
func storeExists(url string) (bool, error) {
	path := storeFile(url)
	if path == "" {
		return true, nil
	}
	_, err := os.Lstat(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err == nil, nil
	}
	return false, fmt.Errorf("cannot look at the store: %w", err)
}

// removeStore removes the files of a SQLite store; other stores are not ours.
func removeStore(url string) error {
	path := storeFile(url)
	if path == "" {
		return nil
	}
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", "-bell"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("cannot remove the store: %w", err))
		}
	}
	return errors.Join(errs...)
}
