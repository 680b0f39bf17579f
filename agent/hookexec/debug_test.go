package hookexec

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

// TestWindowOfTheInterrupted checks that a hook leaves no window behind if it is interrupted while tmux
// opens one.
func TestWindowOfTheInterrupted(t *testing.T) {
	real, err := exec.LookPath("tmux")
	if err != nil {
		need.Skip(t, "tmux", err)
	}
	dir := t.TempDir()
	slow := "#!/bin/sh\n" + real + " \"$@\"; e=$?\ncase \" $* \" in *' new-window '*) sleep 60;; esac\nexit $e\n"
	if err := os.WriteFile(filepath.Join(dir, "tmux"), []byte(slow), 0o755); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	tmux := func(args ...string) string {
		out, _ := exec.Command(real, append([]string{"-S", socket}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out))
	}
	tmux("new-session", "-d", "-s", "debug", "-n", "main", "/bin/sh")
	defer tmux("kill-server")
	argv, err := Debug{Socket: socket, Always: true}.windowArgv(Spec{Hook: "config-changed", CharmDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: argv[0], Args: argv, Env: []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "JUJU_CHARM_DIR=" + dir, "TMPDIR=" + dir}, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	windows := func() string { return strings.ReplaceAll(tmux("list-windows", "-a", "-F", "#W"), "\n", " ") }
	poll := await.Poll{Limit: time.Minute}
	await.Until(t, poll, "there is a window", func() bool { return windows() == "main config-changed" })
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it succeeded")
	}
	await.Until(t, poll, "there is none", func() bool { return windows() == "main" })
}
