// Package localenv is one environment of this host in a BIJOU_HOME of a test's own, as an
// operator at a shell has it: the commands, the agent's process and log, the state's file.
//
// It imports nothing of bijou but other packages for tests. Suites import it.
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

// Env is the environment "default" of a home.
type Env struct {
	T    *testing.T
	Home string                    // BIJOU_HOME
	Vars []string                  // of commands
	Call []string                  // how juju is called
	Run  func(cmd *exec.Cmd) error // what Juju and Try run a command by
}

// New is an environment in that home that nobody has bootstrapped yet, and whose commands
// have these variables besides.
func New(t *testing.T, home string, vars ...string) *Env {
	vars = append(append(os.Environ(), "BIJOU_HOME="+home, "NO_COLOR=1"), vars...)
	return &Env{T: t, Home: home, Vars: vars, Call: []string{"juju"}, Run: (*exec.Cmd).Run}
}

// Destroy takes the environment down. If the test has failed it first prints the end of
// the log.
func (e *Env) Destroy(log func() string) {
	if e.T.Failed() {
		e.T.Logf("agent.log ends:\n%s", Tail(log(), 6000))
	}
	if out, err := e.Command("destroy-environment", "-y", "--force", "default").CombinedOutput(); err != nil {
		e.T.Errorf("cannot clean up: %v\n%s", err, out)
	}
}

// Dir is the environment's folder.
func (e *Env) Dir() string { return filepath.Join(e.Home, "default") }

// Machine is a file of machine 0's folder.
func (e *Env) Machine(parts ...string) string {
	return filepath.Join(append([]string{e.Dir(), "machines", "0"}, parts...)...)
}

// Unit is a file of a unit's folder.
func (e *Env) Unit(unit string, parts ...string) string {
	return e.Machine(append([]string{"units", strings.ReplaceAll(unit, "/", "-")}, parts...)...)
}

// StateFile is the file of a state that is nowhere else.
func (e *Env) StateFile() string { return filepath.Join(e.Dir(), "state", "state.db") }

// Command is one of the operator's, which is not begun.
func (e *Env) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(e.Call[0], append(e.Call[1:len(e.Call):len(e.Call)], args...)...)
	cmd.Env = slices.Clip(e.Vars) // who adds to it adds to a copy
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

// Try runs a command that may be refused.
func (e *Env) Try(args ...string) { _ = e.Run(e.Command(args...)) }

// Status is what juju status says, or why it does not.
func (e *Env) Status() string {
	out, _ := e.Command("status").CombinedOutput()
	return string(out)
}

// Agent is the process id of the background process.
func (e *Env) Agent() int {
	e.T.Helper()
	return PID(e.T, e.Machine("agent.pid"))
}

// Log is what the background process has said.
func (e *Env) Log() string {
	data, _ := os.ReadFile(e.Machine("agent.log"))
	return string(data)
}

// Tail is the end of a text.
func Tail(text string, size int) string { return text[max(0, len(text)-size):] }

// PID reads the process id that a file begins with.
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

// Alive reports whether a process runs; a zombie does not.
func Alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

// lockProgram holds a file's lock until its input ends. It is another program than ours,
// with another SQLite.
const lockProgram = `
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
c.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
c.execute("ROLLBACK")
`

// Lock has another program lock a SQLite file until the function that it returns is
// called, or skips the test with one line.
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
