package outage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

// TestReadOnly makes the file system under the state of a working fleet read-only, as Linux does after
// an error in it. The file system is then checked and mounted again, and the agents are started.
func TestReadOnly(t *testing.T) {
	need.Long(t)
	d := newDisk(t)
	w := newWorld(t, "sqlite:"+filepath.Join(d.folder, "state.db"))
	services := []string{"hub", "east", "west"}
	w.deployFleet(services, 3)
	rest(3 * time.Second)
	mark := w.mark()
	l := w.drive(services)
	rest(5 * time.Second)
	d.damage()
	w.eventually("the agents say that they may not write", time.Minute, func() string { return lacks(w.log(mark), "no permission to write") })
	for _, args := range [][]string{{"deploy", w.charm, "late"}, {"add-unit", "east", "-n", "20"}} {
		a := w.ask(args...)
		w.checkRefusal(a, patient)
		if !strings.Contains(a.err, "no permission to write") {
			t.Errorf("want an error that says why: %s", a)
		}
	}
	if a := w.ask("status"); a.code != 0 {
		t.Errorf("what only reads goes on: %s", a)
	}
	rest(5 * time.Second)
	refused := slices.DeleteFunc(refusals(l.halt()), refusedByRule)
	for _, a := range refused {
		w.checkRefusal(a, patient)
	}
	w.killAll()
	w.noteKill()
	d.repair()
	w.Juju("start")
	w.settle("the file system was read-only")
	if strings.Contains(w.Juju("status"), "late") {
		t.Error("a deploy that was refused has left a service")
	}
	w.judge("read-only file system", fmt.Sprintf("%d commands refused", len(refused)))
	for line, n := range w.trouble(mark) { // the first warning says that the disk has errors, and the next that it is not writable
		if n > 1 {
			t.Errorf("said %d times in one outage: %s", n, line)
		}
	}
	sound(t, w.StateFile())
}

// disk is a separate file system in a file. It is mounted below a directory with shared mounts. Without that,
// a container that starts during the test would have a copy of the mount, and would keep the file system in
// use after its unmount here.
type disk struct {
	t      *testing.T
	image  string
	folder string
}

// newDisk creates and mounts a disk. If it cannot, it skips the test with one line.
func newDisk(t *testing.T) *disk {
	t.Helper()
	shared := t.TempDir()
	d := &disk{t: t, image: filepath.Join(t.TempDir(), "image"), folder: filepath.Join(shared, "state")}
	check(t, os.Mkdir(d.folder, 0o700))
	check(t, os.WriteFile(d.image, nil, 0o600))
	check(t, os.Truncate(d.image, 256<<20))
	d.run("mkfs.ext4", "-q", d.image)
	d.run("mount", "--bind", shared, shared)
	t.Cleanup(func() { check(t, syscall.Unmount(shared, syscall.MNT_DETACH)) })
	d.run("mount", "--make-shared", shared)
	if out, err := d.mount(); err != nil {
		need.Skip(t, "loop", fmt.Sprintf("cannot mount a file: %v: %s", err, out))
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *disk) mount() ([]byte, error) {
	return exec.Command("mount", "-o", "loop,errors=remount-ro", d.image, d.folder).CombinedOutput()
}

// damage makes Linux find an error in the file system.
func (d *disk) damage() {
	d.t.Helper()
	check(d.t, os.WriteFile(filepath.Join(d.kernelFolder(), "trigger_fs_error"), []byte("1"), 0))
	if err := os.WriteFile(filepath.Join(d.folder, "probe"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		d.t.Fatalf("the file system is not read-only: %v", err)
	}
}

// kernelFolder returns a directory that exists as long as the file system is mounted anywhere.
func (d *disk) kernelFolder() string {
	device, err := exec.Command("findmnt", "-no", "SOURCE", d.folder).Output()
	check(d.t, err)
	return filepath.Join("/sys/fs/ext4", filepath.Base(strings.TrimSpace(string(device))))
}

// repair repairs the file system as an operator does before using it again.
func (d *disk) repair() {
	d.t.Helper()
	known := d.kernelFolder()
	check(d.t, syscall.Unmount(d.folder, 0))
	await.Until(d.t, await.Poll{Limit: time.Minute, Pause: 50 * time.Millisecond}, "nobody has the file system mounted: "+known+" is gone", func() bool {
		_, err := os.Stat(known)
		return errors.Is(err, os.ErrNotExist)
	})
	var mended *exec.ExitError
	if out, err := exec.Command("e2fsck", "-fy", d.image).CombinedOutput(); errors.As(err, &mended) && mended.ExitCode() > 1 {
		d.t.Fatalf("e2fsck: %v\n%s", err, out)
	}
	if out, err := d.mount(); err != nil {
		d.t.Fatalf("cannot mount again: %v\n%s", err, out)
	}
}

func (d *disk) run(name string, args ...string) {
	d.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		d.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
