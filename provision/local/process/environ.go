package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// FindByEnviron returns the processes of this user whose environment has that NAME=VALUE word, but for
// this process and those it descends from. They are found as they are now; new ones may come.
func FindByEnviron(word string) []Identity {
	return findProcesses("environ", func(_ int, words []string) bool { return slices.Contains(words, word) })
}

// FindByArgs returns the processes that were called with these arguments, the first as a name or a
// path, and see the same root folder as this one; otherwise it is as FindByEnviron.
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

// A process that is just going over to another program has no environment and no arguments, which
// is waited for, for a moment.
func readWords(pid int, file string) []byte {
	data, err := os.ReadFile(file)
	if err != nil || len(data) > 0 {
		return data
	}
	waitWhile(func() bool { return isLoading(pid) })
	data, _ = os.ReadFile(file) // it may have ended
	return data
}

// Within execve(2) there is memory of the new program, and no environment yet, not even an empty
// one.
func isLoading(pid int) bool {
	s, err := readStat(pid)
	return err == nil && s.loading
}

// This process is one of them.
func findAncestors() map[int]bool {
	all := map[int]bool{}
	for pid := os.Getpid(); pid > 1 && !all[pid]; {
		all[pid] = true
		s, err := readStat(pid)
		if err != nil {
			break
		}
		pid = s.parent
	}
	return all
}

// Describe returns a process for messages: its id and its command line.
func Describe(i Identity) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", i.PID))
	return fmt.Sprintf("process %d (%s)", i.PID, bytes.TrimSpace(bytes.ReplaceAll(data, []byte{0}, []byte{' '})))
}
