package fleet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// descendant follows the first child of a process for the given number of generations.
func descendant(pid, generations int) (int, error) {
	for range generations {
		child, err := childOf(pid)
		if err != nil {
			return 0, err
		}
		pid = child
	}
	return pid, nil
}

// childOf returns the child of a process with the smallest id. It ignores zombies.
func childOf(parent int) (int, error) {
	found := 0
	// Glob fails only for a bad pattern.
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			// The process has ended.
			continue
		}
		// The state and the parent follow the name, which can contain any character (proc(5)).
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if len(fields) < 2 || fields[0] == "Z" || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && (found == 0 || pid < found) {
			found = pid
		}
	}
	if found == 0 {
		return 0, fmt.Errorf("process %d has no child", parent)
	}
	return found, nil
}
