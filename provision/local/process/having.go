package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Having lists the processes of this user whose environment has that NAME=VALUE
// word, but for this process and those it descends from. They are found as they
// are now; new ones may come.
func Having(word string) []Identity {
	ours := ancestors()
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	var found []Identity
	for _, f := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil || ours[pid] || !slices.ContainsFunc(bytes.Split(environment(pid), []byte{0}), func(w []byte) bool { return string(w) == word }) {
			continue
		}
		if i, err := Find(pid); err == nil {
			found = append(found, i)
		}
	}
	return found
}

// environment is that of a process of this user. One that is just going over to
// another program has none, which is waited for, for a moment.
func environment(pid int) []byte {
	file := fmt.Sprintf("/proc/%d/environ", pid)
	data, err := os.ReadFile(file)
	if err != nil || len(data) > 0 {
		return data
	}
	briefly(func() bool { return loading(pid) })
	data, _ = os.ReadFile(file) // it may have ended
	return data
}

// loading tells if the process is within execve(2): of its new program there is memory,
// and no environment yet, not even an empty one.
func loading(pid int) bool {
	s, err := readStat(pid)
	return err == nil && s.loading
}

// ancestors are this process and those it descends from.
func ancestors() map[int]bool {
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

// Describe is a process for messages: its id and its command line.
func Describe(i Identity) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", i.PID))
	return fmt.Sprintf("process %d (%s)", i.PID, bytes.TrimSpace(bytes.ReplaceAll(data, []byte{0}, []byte{' '})))
}
