// Package jsonfile reads and writes records in JSON files. The files survive a power loss, and keep members
// that a newer binary has written. Package keyspace does the same for records in a store.
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

// Write replaces a file with a document, as osutil.WriteFile does. Only the owner can read the file. Write
// keeps the members that a newer binary has written; see package carry. If the previous file is not regular or
// cannot be read, Write keeps nothing from it.
func Write(path string, doc any) error {
	data, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	data = carry.Over(readRegular(path), data, doc)
	return osutil.WriteFile(path, append(data, '\n'), 0o600)
}

// readRegular returns the content of a file without white space at its ends, or nil if the file is not regular or
// cannot be read. It opens only regular files, since opening any other file could block.
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

// Read reads into doc a document that Write has written. If the file does not exist, Read returns false and no
// error, and does not change doc. With an error, it returns true, since the file may exist.
func Read(path string, doc any) (exists bool, err error) {
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
