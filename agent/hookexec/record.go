package hookexec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// record notes which process runs which hook, so that an agent that starts
// after a crash finds it. The start time makes the process id unmistakable, the
// boot id a start time that is counted from the machine's boot.
type record struct {
	ID    string `json:"id"`
	PID   int    `json:"pid"`
	Start string `json:"start"` // field 22 of /proc/PID/stat
	Boot  string `json:"boot"`  // /proc/sys/kernel/random/boot_id
}

// writeRecord notes the process in the file, durably.
func writeRecord(path, id string, pid int) error {
	start, err := startTime(pid)
	if err != nil {
		return fmt.Errorf("cannot note the hook's process: %w", err)
	}
	data, err := json.Marshal(record{ID: id, PID: pid, Start: start, Boot: bootID()})
	if err != nil {
		return fmt.Errorf("cannot note the hook's process: %w", err)
	}
	if err := renameio.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot note the hook's process: %w", err)
	}
	return nil
}

// Reap looks for the process that was let go for the run with that id by an
// agent that has died since. If it still lives, its process group is killed and
// waited for, and killed is true. Daemons whose leading process is gone are
// left alone. No record, or one of another run, means that it was never let go.
func Reap(path, id string) (killed bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot read the note about the last hook: %w", err)
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return false, fmt.Errorf("cannot read the note %q about the last hook: %w", path, err)
	}
	if r.ID != id || r.Boot != bootID() || !r.alive() {
		return false, nil
	}
	for end := time.Now().Add(30 * time.Second); r.alive(); time.Sleep(10 * time.Millisecond) {
		if err := unix.Kill(-r.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return false, fmt.Errorf("cannot kill the hook's process group %d: %w", r.PID, err)
		}
		if time.Now().After(end) {
			return false, fmt.Errorf("cannot kill the hook's process %d: it does not die", r.PID)
		}
	}
	return true, nil
}

// alive is true while that very process runs; one that is dead but not yet
// collected by its parent counts as gone.
func (r record) alive() bool {
	start, err := startTime(r.PID)
	return err == nil && start == r.Start
}

// startTime answers field 22 of a living process's stat. The second field is a
// name in parentheses that may hold anything, so counting starts behind it.
func startTime(pid int) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	_, after, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	fields := strings.Fields(after)
	if len(fields) < 20 {
		return "", fmt.Errorf("unknown form of /proc/%d/stat", pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	return fields[19], nil
}

// bootID names this boot of the machine; empty where the kernel does not say.
func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}
