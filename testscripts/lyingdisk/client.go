package lyingdisk

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"bijou/testscripts/need"
)

func survives(chance float64) bool { return rand.Float64() < chance }

// Disk is a disk that a process of its own serves.
type Disk struct {
	Path string // where it is mounted

	t       testing.TB
	orders  io.WriteCloser
	answers *bufio.Reader
}

// New mounts a disk for the test, or skips it where there is no FUSE.
func New(t testing.TB) *Disk {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Getuid() != 0 {
		need.Skip(t, "fuse", "cannot mount a file system: it takes root and /dev/fuse")
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	d := &Disk{Path: t.TempDir(), t: t}
	cmd := exec.Command(executable)
	cmd.Args = []string{Program, d.Path, t.TempDir()}
	cmd.Stderr = os.Stderr
	if d.orders, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.answers = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.orders.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the disk: %v", err)
		}
	})
	d.await("ready")
	return d
}

func (d *Disk) await(want string) {
	d.t.Helper()
	answer, err := d.answers.ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != want {
		d.t.Fatalf("the disk says %q (%v), want %q", answer, err, want)
	}
}

func (d *Disk) order(want, format string, args ...any) {
	d.t.Helper()
	if _, err := fmt.Fprintf(d.orders, format+"\n", args...); err != nil {
		d.t.Fatal(err)
	}
	d.await(want)
}

// Fail has "read", "write" or "sync" fail with EIO from now on.
func (d *Disk) Fail(what ...string) {
	d.t.Helper()
	d.order("done", "fail %s", strings.Join(what, " "))
}

// Heal ends all failures.
func (d *Disk) Heal() {
	d.t.Helper()
	d.order("done", "heal")
}

// Failed returns how often something failed since the last cut.
func (d *Disk) Failed(what string) int {
	d.t.Helper()
	if _, err := fmt.Fprintf(d.orders, "failed %s\n", what); err != nil {
		d.t.Fatal(err)
	}
	answer, err := d.answers.ReadString('\n')
	if err != nil {
		d.t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(answer))
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

// Cut has the power go, and come back: of what was not synced each page and each name survives with
// that chance. No process may use the disk.
func (d *Disk) Cut(survive float64) {
	d.t.Helper()
	d.order("cut", "cut %g", survive)
}
