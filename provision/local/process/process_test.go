package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"bijou/testscripts/kit/await"
)

func TestIdentityOfReusedID(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if !self.Alive() {
		t.Error("this process does not live")
	}
	other := Identity{PID: self.PID, Start: self.Start + "1"}
	if other.Alive() {
		t.Error("a process of another start time counts as the same")
	}
	if err := Stop(t.Context(), other, 0); err != nil {
		t.Error(err)
	}
}

func TestZombieIsGone(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	i, err := Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := Stop(t.Context(), i, time.Minute); err != nil {
		t.Error(err)
	}
	if i.Alive() {
		t.Error("a stopped child lives")
	}
}

// TestDyingHolder checks that a killed process no longer counts as running once it has lost its memory, even
// before it is a zombie.
func TestDyingHolder(t *testing.T) {
	for range 50 {
		dir := t.TempDir()
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		i, err := Find(cmd.Process.Pid)
		if err := errors.Join(err, i.WriteFile(pidFile(dir))); err != nil {
			t.Fatal(err)
		}
		if held, err := Holder(dir); held != i || err != nil {
			t.Errorf("it runs: %v, %v", held, err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for exe := fmt.Sprintf("/proc/%d/exe", i.PID); err == nil; {
			_, err = os.Readlink(exe)
		}
		if _, err := Holder(dir); !errors.Is(err, ErrGone) {
			t.Errorf("it was killed: %v", err)
		}
		_ = cmd.Wait() // returns an error, since the process was killed
	}
}

func TestStopKillsTheDeaf(t *testing.T) {
	dir := t.TempDir()
	i, err := Detach(Detached{
		Path: "/bin/sh", Args: []string{"sh", "-c", "trap '' TERM; : >" + dir + "/deaf; while :; do sleep 0.1; done"},
		Log: filepath.Join(dir, "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, await.Poll{Limit: time.Minute}, "the process says that it is deaf", func() bool {
		_, err := os.Stat(filepath.Join(dir, "deaf"))
		return err == nil
	})
	if err := Stop(t.Context(), i, 50*time.Millisecond); err != nil {
		t.Error(err)
	}
	if i.Alive() {
		t.Error("it lives")
	}
}

func TestTakeIsExclusive(t *testing.T) {
	dir := t.TempDir()
	if _, err := Holder(dir); !errors.Is(err, ErrGone) {
		t.Errorf("error %v of an untaken folder", err)
	}
	h, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("error %v, want ErrHeld", err)
	}
	if i, err := Holder(dir); err != nil || i.PID != os.Getpid() {
		t.Errorf("holder %v, %v", i, err)
	}
	h.Release()
	if free, err := IsFree(dir); err != nil || !free {
		t.Errorf("free %v, %v", free, err)
	}
}

func TestReadFileRefusesNonsense(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.pid")
	for _, text := range []string{"", "1", "x y", "1 2 3"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if i, err := ReadFile(path); err == nil {
			t.Errorf("%q was read as %v", text, i)
		}
	}
}

func TestHaving(t *testing.T) {
	word := "BIJOU_TEST_WORD=" + t.TempDir()
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{word}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := FindByEnviron(word)
	if len(found) != 1 || found[0].PID != cmd.Process.Pid {
		t.Errorf("found %v, want process %d", found, cmd.Process.Pid)
	}
	for _, i := range found {
		if err := Stop(t.Context(), i, time.Minute); err != nil {
			t.Error(err)
		}
	}
	if found := FindByEnviron(word); len(found) != 0 {
		t.Errorf("found %v after its end", found)
	}
}

// TestHolderOfACopy checks that a copied directory has no holder, although its files name the process
// that holds the original.
func TestHolderOfACopy(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	hold, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Release()
	for _, name := range []string{"agent.pid", lockName} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err := errors.Join(err, os.WriteFile(filepath.Join(copied, name), data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Holder(dir); err != nil {
		t.Errorf("the original: %v", err)
	}
	if _, err := Holder(copied); !errors.Is(err, ErrGone) {
		t.Errorf("the copy: %v", err)
	}
}
