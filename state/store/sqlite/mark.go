package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"bijou/state/osutil"
	"bijou/state/store"
)

// markSuffix is the suffix of the file that records that a store was replaced.
const markSuffix = "-replaced"

// mark is the content of the file with markSuffix. The mark counts only as long as the store's file is File.
type mark struct {
	What    string    `json:"what"`
	Remove  []string  `json:"remove"`
	Found   time.Time `json:"found"`
	Process int       `json:"process"`
	File    fileID    `json:"file"`
}

// leaveMark writes the file that records that the store was replaced while processes had it open. It writes
// nothing if the store's file does not exist.
func leaveMark(path string, r *store.Replaced) error {
	id, err := identify(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	m := mark{What: r.What, Remove: r.Remove, Found: time.Now().UTC(), Process: os.Getpid(), File: id}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := showMark(path, data); err != nil {
		return err
	}

	return osutil.WriteFile(path+markSuffix, data, 0o600)
}

// showMark makes the mark visible to other processes without waiting for the disk, since that wait can be
// long.
func showMark(path string, data []byte) error {
	draft := fmt.Sprintf("%s%s.%d", path, markSuffix, os.Getpid())
	if err := os.WriteFile(draft, data, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, path+markSuffix)
}

// checkMark returns an ErrStoreGone if another process has left a mark. It returns nil if there is no mark
// for this file.
func checkMark(file storeFile) error {
	path := file.path + markSuffix
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	var m mark
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("cannot read %q: %w", path, err)
	}
	if m.File != file.id {
		return nil
	}

	what := fmt.Sprintf("%s (found by process %d at %s)", m.What, m.Process, m.Found.Format(time.RFC3339))
	return &store.Replaced{What: what, Remove: m.Remove}
}
