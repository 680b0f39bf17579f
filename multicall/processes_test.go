package multicall

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Under the name of a machine agent, this binary never locks its directory.
func init() {
	if filepath.Base(os.Args[0]) == "machine-agent" {
		time.Sleep(time.Minute)
		os.Exit(0)
	}
}

// TestAgentThatComesUp checks that a starting agent is found and ended like a running one.
func TestAgentThatComesUp(t *testing.T) {
	env := t.TempDir()
	dir := filepath.Join(env, "machines", "1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := func(machine string) *exec.Cmd {
		cmd := &exec.Cmd{Path: self, Args: []string{"/tools/machine-agent", "--machine", machine, "--env", env}}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() }) // does nothing if the process was already reaped
		return cmd
	}
	start("2")
	if pid, err := (processes{}).Process(dir); pid != 0 || err != nil {
		t.Errorf("before its start: process %d, error %v", pid, err)
	}
	cmd := start("1")
	if pid, err := (processes{}).Process(dir); pid != cmd.Process.Pid || err != nil {
		t.Errorf("process %d, error %v: want %d", pid, err, cmd.Process.Pid)
	}
	if pid, err := (processes{}).Running(dir); pid != 0 || err != nil {
		t.Errorf("it runs already: process %d, error %v", pid, err)
	}
	if err := (processes{}).Halt(t.Context(), dir, time.Minute); err != nil {
		t.Error(err)
	}
	if pid, err := (processes{}).Process(dir); pid != 0 || err != nil {
		t.Errorf("after its end: process %d, error %v", pid, err)
	}
}
