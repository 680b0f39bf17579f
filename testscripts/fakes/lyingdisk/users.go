package lyingdisk

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bijou/testscripts/kit/await"
)

// KillUsers kills every process that uses the disk. It stops all of them first, so that no process sees the
// end of another. The caller must not start processes that use the disk during this.
func (d *Disk) KillUsers() {
	d.t.Helper()
	stopped := map[int]bool{}
	for found := true; found; {
		found = false
		for _, pid := range d.users() {
			if !stopped[pid] {
				stopped[pid], found = true, true
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
	}

	await.Until(d.t, await.Poll{Limit: time.Minute}, "nobody uses the disk", func() string {
		left := d.users()
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return await.Unless(len(left) == 0, "%v use it", left)
	})
}

// users returns the processes that have a file of the disk open or mapped, run a program from it, or
// have their working directory on it.
func (d *Disk) users() (pids []int) {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		pid, _ := strconv.Atoi(filepath.Base(process))
		if pid != os.Getpid() && d.isUsedBy(process) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (d *Disk) isUsedBy(process string) bool {
	links, _ := filepath.Glob(process + "/fd/*")
	links = append(links, process+"/cwd", process+"/exe", process+"/root")
	if slices.ContainsFunc(links, func(link string) bool {
		to, _ := os.Readlink(link)
		return d.holds(to)
	}) {
		return true
	}
	maps, _ := os.ReadFile(process + "/maps")
	return strings.Contains(string(maps), fmt.Sprintf(" %s/", d.Path))
}

func (d *Disk) holds(path string) bool { return path == d.Path || strings.HasPrefix(path, d.Path+"/") }
