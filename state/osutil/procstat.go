package osutil

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// ProcStat holds the fields of /proc/PID/stat, which proc(5) describes, from the third field on. The second
// field is a name in parentheses, which can contain any characters.
type ProcStat []string

// Each ProcStat has at least the fields from firstField to lastField, in the numbering of proc(5).
const (
	firstField = 3
	lastField  = 51
)

// ReadProcStat reads /proc/PID/stat of a process. It returns an error if there is no such process.
func ReadProcStat(pid int) (ProcStat, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/stat"
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}

	// The name can contain parentheses, so only the last parenthesis ends the name.
	afterName := data[bytes.LastIndexByte(data, ')')+1:]
	s := ProcStat(strings.Fields(string(afterName)))
	if len(s) < lastField-firstField+1 {
		return nil, fmt.Errorf("unknown format of %s", path)
	}

	return s, nil
}

// Field returns a field by its number in proc(5), from 3 to 51.
func (s ProcStat) Field(n int) string { return s[n-firstField] }

// Start returns when the process started, in clock ticks after the boot.
func (s ProcStat) Start() string { return s.Field(22) }

// IsGone reports whether the process has exited, but its parent has not waited for it yet.
func (s ProcStat) IsGone() bool { return s.Field(3) == "Z" || s.Field(3) == "X" }

// IsStopped reports whether a signal or a tracer has stopped the process.
func (s ProcStat) IsStopped() bool { return s.Field(3) == "T" || s.Field(3) == "t" }

// BootID returns the id of the host's current boot, or "" if it cannot be read.
var BootID = sync.OnceValue(func() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
})
