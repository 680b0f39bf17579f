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

// ErrGone means that a process is not running.
var ErrGone = errors.New("process is gone")

// Identity identifies a process until the host reboots.
type Identity struct {
	PID   int
	Start string // when it started, in clock ticks since boot, as in /proc/PID/stat
}

// String returns the identity as the line of a pid file: "PID START".
func (i Identity) String() string { return fmt.Sprintf("%d %s", i.PID, i.Start) }

// Self returns the identity of this process.
func Self() (Identity, error) { return Find(os.Getpid()) }

// Find returns the identity of the process that has this PID now. It returns ErrGone if there is no such
// process, or only a zombie.
func Find(pid int) (Identity, error) {
	stat, err := osutil.ReadProcStat(pid)
	if err != nil || stat.IsGone() {
		return Identity{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return Identity{PID: pid, Start: stat.Start()}, nil
}

// Alive reports whether the process is running. A zombie does not count as running. If the zombie is a child
// of this process, Alive also reaps it.
func (i Identity) Alive() bool {
	if i.PID <= 0 {
		return false
	}
	stat, err := osutil.ReadProcStat(i.PID)
	if err != nil || stat.Start() != i.Start {
		return false
	}

	// Field 4 is the parent's PID.
	isOwnChild := stat.Field(4) == strconv.Itoa(os.Getpid())
	if stat.IsGone() && isOwnChild {
		// Reap the zombie. This fails if os/exec has reaped it first.
		_, _ = syscall.Wait4(i.PID, nil, syscall.WNOHANG, nil)
	}
	return !stat.IsGone()
}

// isExiting reports whether the process is about to end, for example because it was killed, while its files
// are still open.
func (i Identity) isExiting() bool {
	stat, err := osutil.ReadProcStat(i.PID)
	if err != nil || stat.Start() != i.Start || stat.IsGone() {
		return false
	}
	// Field 9 contains the kernel's flags of the process.
	flags, _ := strconv.ParseUint(stat.Field(9), 10, 64)
	return flags&pfExiting != 0
}

// WriteFile atomically writes the identity to a pid file.
func (i Identity) WriteFile(path string) error {
	if err := osutil.WriteFile(path, []byte(i.String()+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot write the pid file: %w", err)
	}

	return nil
}

// ReadFile reads a pid file. It returns os.ErrNotExist if the file does not exist.
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

// pfExiting is the Linux kernel's flag PF_EXITING of a process that is exiting.
const pfExiting = 0x4

// FindByEnviron returns the processes that have the word NAME=VALUE in their environment. It leaves out this
// process, its ancestors other than PID 1, and processes whose environment this user cannot read. Processes that
// start during the call may be missing.
func FindByEnviron(word string) []Identity {
	return findProcesses("environ", func(_ int, words []string) bool { return slices.Contains(words, word) })
}

// FindByArgs returns the processes that have these arguments and the same root directory as this process.
// The first argument must match the base name of the process's first argument. Otherwise it is like
// [FindByEnviron].
func FindByArgs(args []string) []Identity {
	root, _ := os.Stat("/")
	return findProcesses("cmdline", func(pid int, words []string) bool {
		if len(words) != len(args) || filepath.Base(words[0]) != args[0] || !slices.Equal(words[1:], args[1:]) {
			return false
		}
		theirs, err := os.Stat(fmt.Sprintf("/proc/%d/root", pid))
		return err == nil && os.SameFile(theirs, root)
	})
}

// findProcesses returns the processes for which matches returns true. The function matches gets the PID, and the
// words in /proc/PID/FILE. findProcesses leaves out the processes that findAncestors returns.
func findProcesses(file string, matches func(pid int, words []string) bool) (found []Identity) {
	excluded := findAncestors()
	// Glob fails only if the pattern is malformed.
	paths, _ := filepath.Glob("/proc/[0-9]*/" + file)
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || excluded[pid] {
			continue
		}

		// Each word ends with a NUL byte.
		data := strings.TrimSuffix(string(readWords(pid, path)), "\x00")
		if !matches(pid, strings.Split(data, "\x00")) {
			continue
		}

		if i, err := Find(pid); err == nil {
			found = append(found, i)
		}
	}

	return found
}

// readWords reads a process's file in /proc that contains its arguments or environment. These are words that end
// with a NUL byte. It returns no words if the process has ended, or if this user cannot read the file.
//
// In the middle of execve, a process has the memory of the new program but no words yet. readWords waits a moment
// for these words. It does not wait for kernel threads, which have neither memory nor words.
func readWords(pid int, file string) []byte {
	data, err := os.ReadFile(file)
	if err != nil || len(data) > 0 {
		return data
	}

	waitWhile(func() bool {
		s, err := osutil.ReadProcStat(pid)
		if err != nil {
			return false
		}
		// Field 23 is the size of the memory. Field 51 is the end of the environment, or 0 without words.
		hasMemory := s.Field(23) != "0"
		hasWords := s.Field(51) != "0"
		return hasMemory && !hasWords
	})

	// If this fails, the process has ended.
	data, _ = os.ReadFile(file)
	return data
}

// findAncestors returns the PIDs of this process and its ancestors. It leaves out PID 1, unless that is this process.
// It stops at a process that it cannot read in /proc.
func findAncestors() map[int]bool {
	ancestors := map[int]bool{os.Getpid(): true}
	for pid := os.Getpid(); pid > 1; {
		ancestors[pid] = true
		s, err := osutil.ReadProcStat(pid)
		if err != nil {
			break
		}

		parent, _ := strconv.Atoi(s.Field(4))
		if ancestors[parent] { // a PID was used again while this loop ran
			break
		}
		pid = parent
	}

	return ancestors
}

// Describe returns the PID and the command line of a process for messages.
func Describe(i Identity) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", i.PID))
	return fmt.Sprintf("process %d (%s)", i.PID, bytes.TrimSpace(bytes.ReplaceAll(data, []byte{0}, []byte{' '})))
}
