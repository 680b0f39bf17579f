// Package localenv is one environment on this host in a test's own BIJOU_HOME. Tests use it like an operator at
// a shell: by its commands, the agent's process and log, and the state's file.
package localenv

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bijou/testscripts/kit/need"
)

// Env is the environment "default" of a BIJOU_HOME.
type Env struct {
	T    *testing.T
	Home string                    // BIJOU_HOME
	Vars []string                  // of commands
	Call []string                  // how juju is called
	Run  func(cmd *exec.Cmd) error // how Juju and Try run a command
}

// New returns an environment, not yet bootstrapped, whose BIJOU_HOME is home. Its commands have the additional
// variables vars.
func New(t *testing.T, home string, vars ...string) *Env {
	vars = append(append(os.Environ(), "BIJOU_HOME="+home, "NO_COLOR=1"), vars...)
	return &Env{T: t, Home: home, Vars: vars, Call: []string{"juju"}, Run: (*exec.Cmd).Run}
}

// Destroy destroys the environment. If the test has failed, it first prints the end of the log.
func (e *Env) Destroy(log func() string) {
	if e.T.Failed() {
		e.T.Logf("agent.log ends:\n%s", Tail(log(), 6000))
	}
	if out, err := e.Command("destroy-environment", "-y", "--force", "default").CombinedOutput(); err != nil {
		e.T.Errorf("cannot clean up: %v\n%s", err, out)
	}
}

// Dir returns the environment's directory.
func (e *Env) Dir() string { return filepath.Join(e.Home, "default") }

// Machine returns the path of a file in machine 0's directory.
func (e *Env) Machine(parts ...string) string {
	return filepath.Join(append([]string{e.Dir(), "machines", "0"}, parts...)...)
}

// Unit returns the path of a file in a unit's directory.
func (e *Env) Unit(unit string, parts ...string) string {
	return e.Machine(append([]string{"units", strings.ReplaceAll(unit, "/", "-")}, parts...)...)
}

// StateFile returns the path of the state's default file.
func (e *Env) StateFile() string { return filepath.Join(e.Dir(), "state", "state.db") }

// Command returns an operator's command. The caller must start it.
func (e *Env) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(e.Call[0], append(e.Call[1:len(e.Call):len(e.Call)], args...)...)
	// Clip makes additions go to a copy.
	cmd.Env = slices.Clip(e.Vars)
	return cmd
}

// Juju runs a command that must succeed, and returns its stdout.
func (e *Env) Juju(args ...string) string {
	e.T.Helper()
	var stdout, stderr bytes.Buffer
	cmd := e.Command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := e.Run(cmd); err != nil {
		e.T.Fatalf("juju %s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

// Try runs a command that can be refused.
func (e *Env) Try(args ...string) { _ = e.Run(e.Command(args...)) }

// Status returns the output of juju status, or its error.
func (e *Env) Status() string {
	out, _ := e.Command("status").CombinedOutput()
	return string(out)
}

// Agent returns the process id of the background process.
func (e *Env) Agent() int {
	e.T.Helper()
	return PID(e.T, e.Machine("agent.pid"))
}

// Log returns the log of the background process.
func (e *Env) Log() string {
	data, _ := os.ReadFile(e.Machine("agent.log"))
	return string(data)
}

// Tail returns the end of a text.
func Tail(text string, size int) string { return text[max(0, len(text)-size):] }

// PID reads the process id at the beginning of a file.
func PID(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	if _, err := fmt.Sscan(string(data), &pid); err != nil {
		t.Fatalf("%s begins with no process id: %q", path, data)
	}
	return pid
}

// Alive reports whether a process runs. A zombie does not run.
func Alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

// lockProgram holds a file's lock until its input ends. It is a separate program with a different
// SQLite.
const lockProgram = `
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
c.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
c.execute("ROLLBACK")
`

// Lock makes a separate program lock a SQLite file until release is called. If it cannot, it skips the
// test with one line.
func Lock(t *testing.T, file string) (release func()) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := Python(t, lockProgram, file)
	in, err := cmd.StdinPipe()
	check(err)
	out, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("cannot lock: %q %v", line, err)
	}
	return func() {
		t.Helper()
		check(in.Close())
		check(cmd.Wait())
	}
}

// Python prepares a program, or skips the test with one line.
func Python(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		need.Skip(t, "python3", "python3 is not installed")
	}
	return exec.Command(path, append([]string{"-c", program}, args...)...)
}
