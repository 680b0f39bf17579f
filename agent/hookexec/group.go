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

// deathbed is how long a killed process group is waited for.
const deathbed = 30 * time.Second

// Grace is how long a hook that is told to end may take to do so.
const Grace = 10 * time.Second

// terminateGroup tells a process group to end, and waits until it has, ctx is done, or
// its grace is over.
func terminateGroup(ctx context.Context, pgid int) {
	_ = unix.Kill(-pgid, unix.SIGTERM)
	for end := time.Now().Add(Grace); groupRuns(pgid) && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
}

// killGroup kills a process group and waits until nobody of it runs any more: a
// hook is not to meet what is left of its predecessor.
func killGroup(pgid int) error {
	for end := time.Now().Add(deathbed); groupRuns(pgid); time.Sleep(10 * time.Millisecond) {
		if err := unix.Kill(-pgid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot kill the hook's process group %d: %w", pgid, err)
		}
		if time.Now().After(end) {
			return fmt.Errorf("cannot kill the hook's process group %d: it does not die", pgid)
		}
	}
	return nil
}

// groupRuns is true while any process of the group runs. The kernel would also
// count those that are dead but not collected by their parent.
func groupRuns(pgid int) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return unix.Kill(-pgid, 0) == nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if st, err := statOf(pid); err == nil && st.group == strconv.Itoa(pgid) {
			return true
		}
	}
	return false
}

// stat is what is needed of /proc/PID/stat.
type stat struct {
	group string // field 5
	start string // field 22
}

// statOf reads the stat of a process; one that is dead but not yet collected by
// its parent counts as gone. The second field is a name in parentheses that may
// hold anything, so counting starts behind it.
func statOf(pid int) (stat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("unknown form of /proc/%d/stat", pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return stat{}, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	return stat{group: fields[2], start: fields[19]}, nil
}
