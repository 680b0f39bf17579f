package hookexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// killTimeout is how long killGroup waits for a group's end.
const killTimeout = 30 * time.Second

// TerminateTimeout is how long a hook that is told to end may take to do so.
const TerminateTimeout = 10 * time.Second

func terminateGroup(ctx context.Context, pgid int) {
	_ = unix.Kill(-pgid, unix.SIGTERM)
	for end := time.Now().Add(TerminateTimeout); isGroupRunning(pgid) && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
}

// killGroup blocks until no process of the group runs any more: a hook is not to meet what
// is left of its predecessor.
func killGroup(pgid int) error {
	for end := time.Now().Add(killTimeout); isGroupRunning(pgid); time.Sleep(10 * time.Millisecond) {
		if err := unix.Kill(-pgid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot kill the hook's process group %d: %w", pgid, err)
		}
		if time.Now().After(end) {
			return fmt.Errorf("cannot kill the hook's process group %d: it does not die", pgid)
		}
	}
	return nil
}

// isGroupRunning leaves out processes that are dead but not collected by their parent,
// which the kernel would count.
func isGroupRunning(pgid int) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return unix.Kill(-pgid, 0) == nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if st, err := readStat(pid); err == nil && st.group == strconv.Itoa(pgid) {
			return true
		}
	}
	return false
}

// processStat is a part of /proc/PID/stat.
type processStat struct {
	group string // field 5
	start string // field 22
}

// readStat takes a process that is dead but not collected by its parent for gone. The
// second field is a name in parentheses that may hold anything, so counting starts behind
// it.
func readStat(pid int) (processStat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return processStat{}, err
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 20 {
		return processStat{}, fmt.Errorf("unknown form of /proc/%d/stat", pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return processStat{}, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	return processStat{group: fields[2], start: fields[19]}, nil
}
