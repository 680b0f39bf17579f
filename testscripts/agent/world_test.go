package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bijou/testscripts/script"
)

// world is one BIJOU_HOME with the applets of this test binary around it.
type world struct {
	t    *testing.T
	home string
	env  []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, home: t.TempDir()}
	w.env = append(os.Environ(), "BIJOU_HOME="+w.home, "NO_COLOR=1")
	t.Cleanup(func() {
		script.StopLeftovers(w.home)
		if out, err := w.command("destroy-environment", "-y", "--force", "default").CombinedOutput(); err != nil {
			t.Errorf("cannot clean up: %v\n%s", err, out)
		}
	})
	return w
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command("juju", args...)
	cmd.Env = w.env
	return cmd
}

// juju runs a command that must succeed and answers its stdout.
func (w *world) juju(args ...string) string {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := w.command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("juju %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String()
}

// try runs a command whose failure is of no interest.
func (w *world) try(args ...string) { _ = w.command(args...).Run() }

func (w *world) file(name, content string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) machine(parts ...string) string {
	return filepath.Join(append([]string{w.home, "default", "machines", "0"}, parts...)...)
}

// agent answers the pid of the background process.
func (w *world) agent() int {
	w.t.Helper()
	data, err := os.ReadFile(w.machine("agent.pid"))
	if err != nil {
		w.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.Fields(string(data))[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return pid
}

// record reads what a unit's recorder has noted; a torn last line is left out.
func (w *world) record(unit string) []event {
	w.t.Helper()
	data, _ := os.ReadFile(w.machine("units", unit, "recorder.log"))
	var events []event
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil {
			events = append(events, e)
		}
	}
	return events
}

// eventually waits for something to come true, far longer than it should need.
func (w *world) eventually(what string, true func() bool) {
	w.t.Helper()
	for end := time.Now().Add(60 * time.Second); !true(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(w.machine("agent.log"))
			w.t.Fatalf("never came true: %s\n%s\nagent.log ends:\n%s", what, w.juju("status"), tail(log, 4000))
		}
	}
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// alive tells if a process runs; a zombie does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
