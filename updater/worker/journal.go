package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"bijou/state/durable"
	"bijou/state/filelock"
	"bijou/updater/release"
)

// The phases of a Journal.
const (
	Running = "running"
	Done    = "done"
	Failed  = "failed"
)

// Journal is written to the worker's own disk before it acts, and after. Whatever kills
// it, it goes on from there.
type Journal struct {
	Request int       `json:"request"`
	Started time.Time `json:"started"` // the request's, since another store counts anew
	Attempt int       `json:"attempt"`
	Step    int       `json:"step"` // 0: installing the release
	Name    string    `json:"name"`
	Phase   string    `json:"phase"`
	Message string    `json:"message,omitempty"` // why it failed
	// WaitedFor are the servers at fault, if it is not this one.
	WaitedFor []int     `json:"waited-for,omitempty"`
	At        time.Time `json:"at"` // when it came to this phase
}

func journalFile(dir string) string { return filepath.Join(dir, "journal.json") }

func readJournal(dir string) (j Journal, err error) {
	if err = release.ReadJSON(journalFile(dir), &j); err != nil {
		err = fmt.Errorf("cannot read the journal: %w", err)
	}
	return j, err
}

func writeJournal(dir string, j Journal) error {
	if err := release.WriteJSON(journalFile(dir), j); err != nil {
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	return nil
}

// lockFolder makes this process the folder's only worker, until it ends.
func lockFolder(dir string) (*os.File, error) {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the worker's folder: %w", err)
	}
	f, err := filelock.TryLock(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR)
	if errors.Is(err, filelock.ErrLocked) {
		return nil, fmt.Errorf("cannot lock %s: another worker works there", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the worker's folder: %w", err)
	}
	return f, nil
}
