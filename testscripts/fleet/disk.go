package fleet

import (
	"path/filepath"
	"strconv"
)

// Disk is how this machine reaches a file on the host's disk, whether the host runs
// or not. What is mounted on the host, as /run, is not there.
func (h *Host) Disk(path string) string {
	return filepath.Join("/proc", strconv.Itoa(h.fleet.world), "root", h.dir(), "root", path)
}
