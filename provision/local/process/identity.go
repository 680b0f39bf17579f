package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"bijou/state/osutil"
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
	stat, err := osutil.ReadProcStat(pid)
	if err != nil || stat.IsGone() {
		return Identity{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return Identity{PID: pid, Start: stat.Start()}, nil
}

// Alive reports whether the process lives. A zombie does not; one that this process ought to have
// waited for is waited for now.
func (i Identity) Alive() bool {
	if i.PID <= 0 {
		return false
	}
	stat, err := osutil.ReadProcStat(i.PID)
	if err != nil || stat.Start() != i.Start {
		return false
	}

	if stat.IsGone() && stat.Field(4) == strconv.Itoa(os.Getpid()) {
		_, _ = syscall.Wait4(i.PID, nil, syscall.WNOHANG, nil)
	}
	return !stat.IsGone()
}

// isExiting reports whether the process is about to end: it was killed, for example, and its files are
// still open.
func (i Identity) isExiting() bool {
	stat, err := osutil.ReadProcStat(i.PID)
	if err != nil || stat.Start() != i.Start || stat.IsGone() {
		return false
	}
	flags, _ := strconv.ParseUint(stat.Field(9), 10, 64)
	return flags&pfExiting != 0
}

// WriteFile writes the identity to a pid file, at once.
func (i Identity) WriteFile(path string) error {
	if err := osutil.WriteFile(path, []byte(i.String()+"\n"), 0o644); err != nil {
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
		return Identity{PID: pid, Start: fields[1]}, fmt.Errorf("cannot read the pid file %q: %w", path, err)
	}

	return Identity{PID: pid, Start: fields[1]}, nil
}

// Linux sets this flag on what is ending (PF_EXITING).
const pfExiting = 0x4

// FindByEnviron returns the processes of this user that have the word NAME=VALUE in their environment. It
// leaves out this process and its ancestors. Processes that start meanwhile can be missing.
func FindByEnviron(word string) []Identity {
	return findProcesses("environ", func(_ int, words []string) bool { return slices.Contains(words, word) })
}

// FindByArgs returns the processes with these arguments, the first as a name or a path, that have the same
// root directory as this one. Otherwise it is like [FindByEnviron].
func FindByArgs(args []string) []Identity {
	root, _ := os.Stat("/") // which is there
	return findProcesses("cmdline", func(pid int, words []string) bool {
		if len(words) != len(args) || filepath.Base(words[0]) != args[0] || !slices.Equal(words[1:], args[1:]) {
			return false
		}
		theirs, err := os.Stat(fmt.Sprintf("/proc/%d/root", pid))
		return err == nil && os.SameFile(theirs, root)
	})
}

// findProcesses returns the processes for which matches accepts the words of that file in /proc. It leaves
// out this process and its ancestors.
func findProcesses(file string, matches func(pid int, words []string) bool) (found []Identity) {
	ours := findAncestors()
	files, _ := filepath.Glob("/proc/[0-9]*/" + file) // the pattern is right
	for _, f := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil || ours[pid] || !matches(pid, strings.Split(strings.TrimSuffix(string(readWords(pid, f)), "\x00"), "\x00")) {
			continue
		}

		if i, err := Find(pid); err == nil {
			found = append(found, i)
		}
	}

	return found
}

// readWords reads a file of words of a process in /proc. A process in the middle of execve has memory of
// the new program (fields 23 and 51) but no words yet; readWords waits a moment for them. Kernel threads
// have neither.
func readWords(pid int, file string) []byte {
	data, err := os.ReadFile(file)
	if err != nil || len(data) > 0 {
		return data
	}

	waitWhile(func() bool {
		s, err := osutil.ReadProcStat(pid)
		return err == nil && s.Field(23) != "0" && s.Field(51) == "0"
	})

	data, _ = os.ReadFile(file) // it may have ended
	return data
}

// findAncestors returns the ids of this process and all its ancestors.
func findAncestors() map[int]bool {
	all := map[int]bool{}
	for pid := os.Getpid(); pid > 1 && !all[pid]; {
		all[pid] = true
		s, err := osutil.ReadProcStat(pid)
		if err != nil {
			break
		}
		pid, _ = strconv.Atoi(s.Field(4))
	}

	return all
}

// Describe returns a process for messages: its id and its command line.
func Describe(i Identity) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", i.PID))
	return fmt.Sprintf("process %d (%s)", i.PID, bytes.TrimSpace(bytes.ReplaceAll(data, []byte{0}, []byte{' '})))
}
