package sqlite

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// leaseOwner identifies the process that holds a lease, so that others can find it dead.
// What could not be found out is empty, and proves nothing.
type leaseOwner struct {
	pid   int
	start string // in clock ticks after boot
	pidns string
	boot  string
}

func currentOwner() leaseOwner {
	o := leaseOwner{pid: os.Getpid()}
	o.pidns, _ = os.Readlink("/proc/self/ns/pid")
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	o.boot = strings.TrimSpace(string(boot))
	if self, _ := os.Readlink("/proc/self"); self == fmt.Sprint(o.pid) {
		_, o.start = processStat(o.pid)
	} // otherwise /proc is of another pid namespace, and its numbers mean others
	return o
}

// isProvablyDead reports whether the owner is dead as the process self can prove: it
// is of the same pid namespace, and its machine has been started again since, or
// its pid is free, a zombie's, or that of a process started at another time. Of
// another namespace nothing is known: a container has a boot id of its own.
func (o leaseOwner) isProvablyDead(self leaseOwner) bool {
	if o.boot == "" || self.boot == "" || o.pidns == "" || o.pidns != self.pidns {
		return false
	}
	if o.boot != self.boot {
		return true
	}
	if errors.Is(unix.Kill(o.pid, 0), unix.ESRCH) {
		return true
	}
	if o.start == "" || self.start == "" {
		return false
	}
	state, start := processStat(o.pid)
	return start != "" && (start != o.start || state == "Z" || state == "X")
}

// processStat returns a process's state letter and start time: the fields 3 and 22 of
// /proc/PID/stat (proc(5)), counted behind the name, which may contain anything. They are
// empty if it cannot be read.
func processStat(pid int) (state, start string) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ""
	}
	_, rest, _ := strings.Cut(string(stat[max(0, strings.LastIndexByte(string(stat), ')')):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return "", ""
	}
	return fields[0], fields[19]
}
