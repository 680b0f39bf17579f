package outage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bijou/testscripts/kit/need"
)

// TestDiskFull fills the disk under the state of a working fleet, and frees space again.
func TestDiskFull(t *testing.T) {
	need.Long(t)
	disk := tmpfs(t, "48m")
	w := newWorld(t, "sqlite:"+filepath.Join(disk, "state.db"))
	services := []string{"hub", "east", "west"}
	w.deployFleet(services, 3)
	rest(3 * time.Second)
	mark := w.mark()
	l := w.drive(services)
	filler := fill(t, disk)
	rest(5 * time.Second) // to use up reserved space
	appendUntilFull(t, filler)
	w.eventually("the agents say that the disk is full", time.Minute, func() string { return lacks(w.log(mark), "the disk is full") })
	w.checkFull()
	rest(5 * time.Second)
	check(t, os.Remove(filler))
	refused := slices.DeleteFunc(refusals(l.halt()), refusedByRule)
	for _, a := range refused {
		if a.code != 1 || strings.Count(a.err, "error: ") != 1 || !strings.Contains(a.err, "the disk is full") {
			t.Errorf("want one error that says that the disk is full: %s", a)
		}
	}
	w.settle("the disk was full")
	if strings.Contains(w.Juju("status"), "late") {
		t.Error("a deploy that was refused has left a service")
	}
	w.judge("full disk", fmt.Sprintf("%d commands refused", len(refused)))
	w.checkSaidAtMostOnce(mark)
	w.tellTrouble(mark)
	sound(t, w.StateFile())
}

// checkFull runs commands. Those that write must be refused, and those that only read must work.
func (w *world) checkFull() {
	w.t.Helper()
	for _, args := range [][]string{{"deploy", w.charm, "late"}, {"add-unit", "east", "-n", "20"}} {
		a := w.ask(args...)
		if a.code != 1 || strings.Count(a.err, "error: ") != 1 || !strings.Contains(a.err, "the disk is full") {
			w.t.Errorf("want one error that says that the disk is full: %s", a)
		}
	}
	if a := w.ask("status"); a.code != 0 {
		w.t.Errorf("what only reads needs no room: %s", a)
	}
}

// tmpfs mounts a small disk for the test. If it cannot, it skips the test with one line.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("bijou-test", dir, "tmpfs", 0, "size="+size); err != nil {
		need.Skip(t, "tmpfs", fmt.Sprintf("cannot mount a tmpfs: %v", err))
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill creates a file that uses all free space.
func fill(t *testing.T, disk string) string {
	t.Helper()
	path := filepath.Join(disk, "filler")
	check(t, os.WriteFile(path, nil, 0o600))
	appendUntilFull(t, path)
	return path
}

func appendUntilFull(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	defer f.Close()
	for page := make([]byte, 4096); err == nil; {
		_, err = f.Write(page)
	}
	if !strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
		t.Fatal(err)
	}
}
