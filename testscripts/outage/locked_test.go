package outage

import (
	"bufio"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/need"
)

// locked is how long another program has the file.
const locked = 30 * time.Second

// lockProgram holds the file's lock until its input ends. It is another program
// than ours, with another SQLite.
const lockProgram = `
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
c.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
c.execute("ROLLBACK")
`

// python prepares a program, or skips the test with one line.
func python(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		need.Skip(t, "python3", "python3 is not installed")
	}
	return exec.Command(path, append([]string{"-c", program}, args...)...)
}

// TestLocked has another program lock the file under a fleet at work: agents and
// commands wait, or say so, and go on.
func TestLocked(t *testing.T) {
	need.Long(t)
	w := newWorld(t, "")
	services := []string{"hub", "east", "west"}
	w.deployFleet(services, 3)
	rest(3 * time.Second)
	mark := w.mark()
	l := w.drive(services)
	release := w.lock()
	for end := time.Now().Add(locked); time.Now().Before(end); rest(3 * time.Second) {
		if a := w.ask("status"); a.code != 0 {
			t.Errorf("what only reads need not wait: %s", a)
		}
	}
	release()
	rest(3 * time.Second)
	refused := slices.DeleteFunc(refusals(l.halt()), refusedByRule)
	for _, a := range refused {
		if a.code != 1 || strings.Count(a.err, "error: ") != 1 || !strings.Contains(a.err, "locked") {
			t.Errorf("want one error that says what is locked: %s", a)
		}
	}
	w.settle("the lock")
	w.judge("locked file", fmt.Sprintf("locked for %v, %d commands refused", locked, len(refused)))
	w.checkSaidAtMostOnce(mark)
	w.tellTrouble(mark)
}

// refusedByRule is true for a command that came too early or too late: the load
// adds and removes without asking what is there.
func refusedByRule(a answer) bool {
	return strings.Contains(a.err, "related already") || strings.Contains(a.err, "not found")
}

// lock locks the file until the function that it answers is called.
func (w *world) lock() (release func()) {
	w.t.Helper()
	cmd := python(w.t, lockProgram, w.stateFile())
	in, err := cmd.StdinPipe()
	check(w.t, err)
	out, err := cmd.StdoutPipe()
	check(w.t, err)
	check(w.t, cmd.Start())
	w.t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		w.t.Fatalf("cannot lock: %q %v", line, err)
	}
	return func() {
		w.t.Helper()
		check(w.t, in.Close())
		check(w.t, cmd.Wait())
	}
}

// checkSaidAtMostOnce wants what an outage is to be said: once that it began, once that it is over.
func (w *world) checkSaidAtMostOnce(mark int) {
	w.t.Helper()
	for _, line := range []string{`msg="cannot go on;`, `msg="going on again"`, `msg="the session was lost;`} {
		if n := strings.Count(w.log(mark), line); n > 1 {
			w.t.Errorf("%s was said %d times in one outage", line, n)
		}
	}
}
