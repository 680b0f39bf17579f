package osutil

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// ProcStat has the fields of /proc/PID/stat (proc(5)) from the third on: the second is a name in
// parentheses that may hold anything.
type ProcStat []string

// ReadProcStat returns an error for a process that is not there.
func ReadProcStat(pid int) (ProcStat, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/stat"
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}

	s := ProcStat(strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])))
	if len(s) < 49 {
		return nil, fmt.Errorf("unknown form of %s", path)
	}

	return s, nil
}

// Field returns a field by its number in proc(5), from 3 to 51.
func (s ProcStat) Field(n int) string { return s[n-3] }

// Start returns when the process started, in clock ticks after the boot.
func (s ProcStat) Start() string { return s.Field(22) }

// IsGone reports whether the process has ended, and its parent only has not been told.
func (s ProcStat) IsGone() bool { return s.Field(3) == "Z" || s.Field(3) == "X" }

// IsStopped reports whether a signal or a tracer has stopped the process.
func (s ProcStat) IsStopped() bool { return s.Field(3) == "T" || s.Field(3) == "t" }

// BootID returns the id of the machine's boot; "" where it cannot be read.
var BootID = sync.OnceValue(func() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
})
