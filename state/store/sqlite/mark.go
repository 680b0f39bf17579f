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

// mark is the content of the file with markSuffix. It is valid only while the store's main file is File.
type mark struct {
	What    string    `json:"what"`    // as in store.Replaced
	Remove  []string  `json:"remove"`  // as in store.Replaced
	Found   time.Time `json:"found"`   // when a process found that the store was replaced
	Process int       `json:"process"` // the pid of that process
	File    fileID    `json:"file"`    // the main file at that time
}

// leaveMark writes the file that records that the store was replaced while processes had it open. path is the
// store's path. leaveMark writes nothing if the store's file does not exist.
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
	// Make the mark visible at once, and then durable.
	if err := showMark(path, data); err != nil {
		return err
	}

	return osutil.WriteFile(path+markSuffix, data, 0o600)
}

// showMark makes the mark visible to other processes without waiting for the disk, since that wait can be long.
// The caller then writes the mark again, durably.
func showMark(path string, data []byte) error {
	draft := fmt.Sprintf("%s%s.%d", path, markSuffix, os.Getpid())
	if err := os.WriteFile(draft, data, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, path+markSuffix)
}

// checkMark returns a [*store.Replaced] if a process has left a mark for this file. It returns nil if there
// is no mark, or if the mark is for a different file, and a different error if it cannot read the mark.
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
