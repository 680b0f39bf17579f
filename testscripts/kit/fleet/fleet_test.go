package fleet

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

// needLong skips a long test unless it was asked for.
func needLong(t *testing.T) {
	t.Helper()
	need.Long(t)
	Need(t)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestHosts(t *testing.T) {
	needLong(t)
	f := New(t, 2)
	a, b := f.Host(0), f.Host(1)
	ping := func() error {
		_, err := a.Exec("ping", "-c1", "-W1", b.Address)
		return err
	}
	check(t, ping())
	check(t, b.Link(false))
	if ping() == nil {
		t.Error("a host is reached whose link is cut")
	}
	check(t, b.Link(true))
	await.Until(t, await.Poll{Limit: bootLimit, Pause: 50 * time.Millisecond}, "the link is up again", func() bool { return ping() == nil })

	a.On(t, "echo kept >/root/file; echo gone >/run/file")
	check(t, a.PowerCut())
	if _, err := a.Exec("true"); err == nil {
		t.Error("a command runs on a host without power")
	}
	check(t, a.Start())
	check(t, ping())
	path, err := a.Path("/root/file")
	check(t, err)
	if data, err := os.ReadFile(path); err != nil || string(data) != "kept\n" {
		t.Errorf("after a power cut the disk has %q, %v", data, err)
	}
	a.On(t, "test ! -e /run/file")

	check(t, b.Stop())
	check(t, b.Start())
	if name := b.On(t, "hostname"); name != b.Name {
		t.Errorf("the host is called %q", name)
	}
	if x, y := a.On(t, "cat /etc/machine-id"), b.On(t, "cat /etc/machine-id"); x == y {
		t.Errorf("both hosts have the machine id %q", x)
	}
}

// victim names the file to which the killed test writes its directory.
const victim = "BIJOU_FLEET_VICTIM"

// TestNothingIsLeft kills a test that runs a fleet, and checks that no part of the fleet survives.
func TestNothingIsLeft(t *testing.T) {
	needLong(t)
	if place := os.Getenv(victim); place != "" {
		f := New(t, 1)
		check(t, os.WriteFile(place, []byte(f.dir), 0o600))
		// Wait to be killed.
		select {}
	}
	place := filepath.Join(t.TempDir(), "dir")
	child := exec.Command(os.Args[0], "-test.run=^TestNothingIsLeft$")
	child.Env = append(os.Environ(), victim+"="+place)
	check(t, child.Start())
	var dir string
	await.Until(t, await.Poll{Limit: bootLimit, Pause: 50 * time.Millisecond}, "the other test has a fleet", func() bool {
		data, err := os.ReadFile(place)
		dir = string(data)
		return err == nil && dir != ""
	})
	check(t, child.Process.Signal(syscall.SIGKILL))
	_ = child.Wait()
	await.Until(t, await.Poll{Limit: bootLimit, Pause: 50 * time.Millisecond}, "its folder and control groups are gone", func() bool {
		left := append(controlGroups(filepath.Base(dir)), dir)
		for _, path := range left {
			if _, err := os.Stat(path); err == nil {
				return false
			}
		}
		return true
	})
	ps, err := exec.Command("ps", "-eo", "args").Output()
	check(t, err)
	for line := range strings.Lines(string(ps)) {
		if strings.Contains(line, dir) {
			t.Errorf("a process is left: %s", line)
		}
	}
}
