// Package jsonfile reads and writes records that are files, as JSON. They survive a loss of power, and
// keep what a newer binary has put into them. What is in a store is package keyspace's.
package jsonfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"bijou/state/carry"
	"bijou/state/osutil"
)

// Write replaces a file by a document, for its owner only, as osutil.WriteFile does. It keeps the members
// that a newer binary has put into the file, as package carry says. It replaces a file that cannot be read
// whole.
func Write(path string, doc any) error {
	data, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	data = carry.Over(readRegular(path), data, doc)
	return osutil.WriteFile(path, append(data, '\n'), 0o600)
}

// readRegular returns the content of a file; nil if it cannot be read, or is no regular file, which could
// block.
func readRegular(path string) []byte {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}

	return bytes.TrimSpace(data)
}

// Read reads a document that Write has written; there is false, and doc left alone, if there is none.
func Read(path string, doc any) (there bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("cannot read %q: %w", path, err)
	}
	if err := json.Unmarshal(data, doc); err != nil {
		return true, fmt.Errorf("cannot read %q: %w", path, err)
	}

	return true, nil
}
