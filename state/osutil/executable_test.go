package osutil

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// openProgram creates a program and keeps it open for writing.
func openProgram(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "program"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteString("#!/bin/sh\n"); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRetry(t *testing.T) {
	f := openProgram(t)
	run := func() error { return exec.Command(f.Name()).Run() }
	if err := RetryBusy(0, run); !errors.Is(err, syscall.ETXTBSY) {
		t.Errorf("a file that stays open for writing: error %v", err)
	}
	calls := 0
	err := RetryBusy(time.Hour, func() error {
		if calls++; calls == 3 {
			f.Close()
		}
		return run()
	})
	if err != nil || calls < 3 {
		t.Errorf("a file that is closed at the third call: error %v after %d calls", err, calls)
	}
	failure, calls := errors.New("no"), 0
	if err := RetryBusy(time.Hour, func() error { calls++; return failure }); err != failure || calls != 1 {
		t.Errorf("another error: %v after %d calls", err, calls)
	}
}

func TestAwaitNoWriter(t *testing.T) {
	f := openProgram(t)
	begin := time.Now()
	AwaitNoWriter(f.Name(), 50*time.Millisecond)
	if waited := time.Since(begin); waited < 50*time.Millisecond {
		t.Errorf("it waited only %s for a file that is open for writing", waited)
	}
	f.Close()
	AwaitNoWriter(f.Name(), time.Hour)
	AwaitNoWriter(f.Name()+".none", time.Hour)
}

func TestBlockForks(t *testing.T) {
	unblock := BlockForks()
	if syscall.ForkLock.TryLock() {
		t.Error("a fork would go on")
		syscall.ForkLock.Unlock()
	}
	unblock()
	// This would hang if forks were still blocked.
	_ = exec.Command("true").Run()
}
