package hookexec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
)

// record says which process runs which hook, so that an agent that starts after a crash
// finds it. The start time makes the process id unique, the boot id a start time that is
// counted from the machine's boot.
type record struct {
	ID    string `json:"id"`
	PID   int    `json:"pid"`
	Start string `json:"start"` // field 22 of /proc/PID/stat
	Boot  string `json:"boot"`  // /proc/sys/kernel/random/boot_id
}

// recordSize is every record's: what follows the JSON is blank.
const recordSize = 256

// writeRecord overwrites the record before in one write: a new file for each hook would cost
// more than all else of its begin. Only the first is a new one. The others need not be
// durable, since no process outlives a loss of power.
func writeRecord(path, id string, pid int) error {
	st, err := readStat(pid)
	if err != nil {
		return fmt.Errorf("cannot note the hook's process: %w", err)
	}
	data, err := json.Marshal(record{ID: id, PID: pid, Start: st.start, Boot: bootID()})
	if err == nil {
		err = overwrite(path, fmt.Appendf(nil, "%-*s\n", recordSize-1, data))
	}
	if err != nil {
		return fmt.Errorf("cannot note the hook's process: %w", err)
	}
	return nil
}

func overwrite(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err == nil {
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() == recordSize {
			_, err = f.WriteAt(data, 0)
			return err
		}
	}
	return renameio.WriteFile(path, data, 0o600, renameio.WithTempDir(filepath.Dir(path)))
}

// Reap looks for the process that was released for the run with that id by an agent that
// has died since. If it still lives, its process group is killed and waited for, and killed
// is true. Daemons whose leading process is gone are left alone. No record, or one of
// another run, means that it was never released.
//
// A record that cannot be read is an error: it was not written by an agent, so that nothing
// says whether the process still runs.
func Reap(path, id string) (killed bool, err error) {
	r, lives, err := findRun(path, id)
	if err != nil || !lives {
		return false, err
	}
	return true, killGroup(r.PID)
}

func findRun(path, id string) (r record, lives bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("cannot read the note about the last hook: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, false, fmt.Errorf("cannot tell if the last hook still runs, since the note %q about its process is damaged: "+
			"end what still runs of it, then remove that file: %w", path, err)
	}
	return r, r.ID == id && r.Boot == bootID() && r.alive(), nil
}

// LastRun returns the id of the run whose process was released last; empty if none was.
func LastRun(path string) (id string, err error) {
	r, _, err := findRun(path, "")
	return r.ID, err
}

// alive reports whether that very process runs, not another one with its id.
func (r record) alive() bool {
	st, err := readStat(r.PID)
	return err == nil && st.start == r.Start
}

func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}
