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

	"bijou/testscripts/kit/need"
)

// Disk is a disk that a separate process serves.
type Disk struct {
	Path string     // where it is mounted
	Dice *rand.Rand // from the disk's seed, for the test's own choices

	t       testing.TB
	orders  io.WriteCloser
	answers *bufio.Reader
}

// New mounts a disk for the test. It skips the test if there is no FUSE.
func New(t testing.TB) *Disk {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Getuid() != 0 {
		need.Skip(t, "fuse", "cannot mount a file system: it takes root and /dev/fuse")
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	seed := chooseSeed(t)
	d := &Disk{Path: t.TempDir(), Dice: rand.New(rand.NewPCG(seed, 1)), t: t}
	cmd := exec.Command(executable)
	cmd.Args = []string{Program, d.Path, t.TempDir(), strconv.FormatUint(seed, 10)}
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

// chooseSeed returns the seed from BIJOU_TEST_SEED, or a random one, and prints it. With the same seed and
// the same timing, a cut loses the same data.
func chooseSeed(t testing.TB) uint64 {
	seed, err := strconv.ParseUint(os.Getenv("BIJOU_TEST_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	fmt.Printf("lying disk: %s: BIJOU_TEST_SEED=%d\n", t.Name(), seed)
	return seed
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

// After Fail, all calls of the kinds "read", "write" or "sync" fail with EIO.
func (d *Disk) Fail(what ...string) {
	d.t.Helper()
	d.order("done", "fail %s", strings.Join(what, " "))
}

// After FailAt, only the n-th call of the kind "read", "write" or "sync" fails.
func (d *Disk) FailAt(n int, what string) {
	d.t.Helper()
	d.order("done", "fail-at %d %s", n, what)
}

// After FailFrom, the n-th call of the kind "read", "write" or "sync", and all later calls of that kind,
// fail. A single failed read may remain unnoticed, because the kernel retries it.
func (d *Disk) FailFrom(n int, what string) {
	d.t.Helper()
	d.order("done", "fail-from %d %s", n, what)
}

// After KillAtSync, the n-th sync kills the calling process and syncs nothing.
func (d *Disk) KillAtSync(n int) {
	d.t.Helper()
	d.order("done", "kill-at %d sync", n)
}

// Heal ends all the faults that the methods above have set.
func (d *Disk) Heal() {
	d.t.Helper()
	d.order("done", "heal")
}

// Failed returns the number of failures of that kind since the last cut.
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

// Cut simulates a power cut: each page and each name that was not synced survives with the probability
// survive. No process may use the disk during the cut. KillUsers ends the processes that do.
func (d *Disk) Cut(survive float64) {
	d.t.Helper()
	d.order("cut", "cut %g", survive)
}
