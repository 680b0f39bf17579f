package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
)

// ErrGone: that process does not live (any more).
var ErrGone = errors.New("process is gone")

// Identity names one process for as long as the host's boot lasts.
type Identity struct {
	PID   int
	Start string // when it started, in clock ticks since boot, as in /proc/PID/stat
}

// String returns the form of a pid file's line: "PID START".
func (i Identity) String() string { return fmt.Sprintf("%d %s", i.PID, i.Start) }

// Self returns the identity of this process.
func Self() (Identity, error) { return Find(os.Getpid()) }

// Find returns the identity of the process that has that id now; ErrGone if
// none has, or only a zombie.
func Find(pid int) (Identity, error) {
	stat, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	if stat.isGone() {
		return Identity{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return Identity{PID: pid, Start: stat.start}, nil
}

// Alive reports whether the process lives. A zombie does not; one that this process ought to have
// waited for is waited for now.
func (i Identity) Alive() bool {
	if i.PID <= 0 {
		return false
	}
	stat, err := readStat(i.PID)
	if err != nil || stat.start != i.Start {
		return false
	}
	if stat.state == "Z" && stat.parent == os.Getpid() {
		_, _ = syscall.Wait4(i.PID, nil, syscall.WNOHANG, nil)
	}
	return !stat.isGone()
}

// Such a process was killed, say, and its files are not closed yet.
func (i Identity) isExiting() bool {
	stat, err := readStat(i.PID)
	return err == nil && stat.start == i.Start && stat.exiting && !stat.isGone()
}

// WriteFile writes the identity to a pid file, at once.
func (i Identity) WriteFile(path string) error {
	if err := renameio.WriteFile(path, []byte(i.String()+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot write the pid file: %w", err)
	}
	return nil
}

// ReadFile reads a pid file. One that is missing is an os.ErrNotExist.
func ReadFile(path string) (Identity, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Identity{}, fmt.Errorf("cannot read the pid file: %w", err)
	}
	fields := strings.Fields(string(data))
	if len(fields) != 2 {
		return Identity{}, fmt.Errorf("cannot read the pid file %q: want PID START, got %q", path, data)
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil {
		return Identity{}, fmt.Errorf("cannot read the pid file %q: %w", path, err)
	}
	return Identity{PID: pid, Start: fields[1]}, nil
}

// procStat holds fields of /proc/PID/stat.
type procStat struct {
	state  string
	parent int
	start  string

	exiting bool
	loading bool
}

// Linux sets this flag on what is ending (PF_EXITING).
const pfExiting = 0x4

// Of a zombie nothing is left but what its parent is to be told.
func (s procStat) isGone() bool { return s.state == "Z" || s.state == "X" }

// readStat reads the fields after the command's name, which may itself hold blanks and parentheses
// (proc(5)).
func readStat(pid int) (procStat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	end := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[end+1:]))
	if end < 0 || len(fields) < 49 {
		return procStat{}, fmt.Errorf("cannot read /proc/%d/stat", pid)
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return procStat{}, fmt.Errorf("cannot read /proc/%d/stat: %w", pid, err)
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	if err != nil {
		return procStat{}, fmt.Errorf("cannot read /proc/%d/stat: %w", pid, err)
	}
	memory, environment := fields[20] != "0", fields[48] != "0" // kernel threads have neither
	return procStat{state: fields[0], parent: parent, start: fields[19], exiting: flags&pfExiting != 0, loading: memory && !environment}, nil
}
