package fleet

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// Disk returns this machine's path to a file on the host's disk, whether the host runs or not. File systems
// that are mounted on the host, such as /run, are not visible there.
func (h *Host) Disk(path string) string {
	return filepath.Join("/proc", strconv.Itoa(h.fleet.world), "root", h.dir(), "root", path)
}

// Put copies a file or directory of this machine to the host's disk.
func (h *Host) Put(t testing.TB, from, to string) {
	t.Helper()
	to = h.makeFolder(t, to)
	if out, err := exec.Command("cp", "-a", "-T", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cannot copy to %s: %v\n%s", h.Name, err, out)
	}
}

// Write writes a file on the host's disk.
func (h *Host) Write(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(h.makeFolder(t, path), []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// makeFolder makes the directory for a file on the host's disk.
func (h *Host) makeFolder(t testing.TB, path string) (file string) {
	t.Helper()
	file = h.Disk(path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}
