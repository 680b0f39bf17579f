package copies

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bijou/multicall/home"
	"bijou/state"
	"bijou/testscripts/judge"
	"bijou/testscripts/need"
)

// TestCopiedFolder has an agent started again and again from a copy of the folder of an
// environment in a file, which names the same file.
func TestCopiedFolder(t *testing.T) {
	w := newFolder(t)
	w.order(3, 8)
	w.withCopy("a copy on the same host, over a file", func() { w.awaitHooks(8) })
}

// TestCopiedFolderLocked has another program lock the file meanwhile, with a hook in
// flight that takes longer.
func TestCopiedFolderLocked(t *testing.T) {
	need.Long(t)
	w := newFolder(t)
	w.order(20, 50)
	w.withCopy("a copy on the same host, over a file that is locked", func() {
		w.awaitHooks(3)
		w.order(600, 600)
		w.awaitBegin()
		w.order(20, 50)
		release := w.lock()
		time.Sleep(outage)
		release()
		w.awaitHooks(3)
	})
}

// outage is how long a store is away: four times as long as a session lives without it.
const outage = 40 * time.Second

// folder is an environment in a file of this host, with one unit.
type folder struct {
	t      *testing.T
	dir    string
	binary string
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	w := &folder{t: t, dir: t.TempDir(), binary: product(t)}
	w.order(1, 2)
	makeCharm(t, filepath.Join(w.dir, "recorder"), w.dir, w.record())
	t.Cleanup(w.destroy)
	w.juju("bootstrap", "--config", "update-status-interval=0")
	w.juju("deploy", filepath.Join(w.dir, "recorder"), "app")
	w.awaitHooks(3) // install, config-changed, start
	return w
}

func (w *folder) env() string    { return filepath.Join(w.dir, "home", "default") }
func (w *folder) record() string { return filepath.Join(w.dir, "record") }

func (w *folder) destroy() {
	if w.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(w.env(), "machines", "0", "agent.log"))
		w.t.Logf("agent.log ends:\n%s", log[max(0, len(log)-4000):])
	}
	if out, err := w.command("destroy-environment", "-y", "--force", "default").CombinedOutput(); err != nil {
		w.t.Errorf("cannot clean up: %v\n%s", err, out)
	}
}

func (w *folder) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.binary, append([]string{"juju"}, args...)...)
	cmd.Env = append(os.Environ(), "BIJOU_HOME="+filepath.Dir(w.env()), "NO_COLOR=1", "BIJOU_STATE=")
	return cmd
}

func (w *folder) juju(args ...string) {
	w.t.Helper()
	if out, err := w.command(args...).CombinedOutput(); err != nil {
		w.t.Fatalf("juju %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// order says how many tenths of a second hooks take from now on.
func (w *folder) order(least, most int) {
	w.t.Helper()
	check(w.t, os.WriteFile(filepath.Join(w.dir, "tenths"), fmt.Appendf(nil, "%d %d\n", least, most), 0o644))
}

func (w *folder) events() []judge.Event {
	w.t.Helper()
	events, err := judge.Read(w.record())
	check(w.t, err)
	return events
}

// awaitHooks waits until so many more runs have ended, after those that have begun.
func (w *folder) awaitHooks(n int) {
	w.t.Helper()
	had := len(judge.Spans(w.events()))
	w.eventually("more hooks have ended", func() string {
		return unless(endedAfter(had, w.events()) >= n, "there are hooks to come")
	})
}

// awaitBegin waits until another hook has begun.
func (w *folder) awaitBegin() {
	w.t.Helper()
	had := len(judge.Spans(w.events()))
	w.eventually("a hook begins", func() string { return unless(len(judge.Spans(w.events())) > had, "none begins") })
}

func (w *folder) eventually(what string, not func() string) {
	w.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		why := not()
		if why == "" {
			return
		}
		if time.Now().After(end) {
			out, _ := w.command("status").CombinedOutput()
			w.t.Fatalf("never came true: %s\n%s\n%s", what, why, out)
		}
	}
}

func unless(so bool, why string) string {
	if so {
		return ""
	}
	return why
}

// withCopy changes settings all the time and has an agent started from a copy again and
// again, while f runs; at the end everything is held against what is promised.
func (w *folder) withCopy(name string, f func()) {
	w.t.Helper()
	halt := w.drive()
	copied := filepath.Join(w.dir, "copy")
	if out, err := exec.Command("cp", "-a", w.env(), copied).CombinedOutput(); err != nil {
		w.t.Fatalf("cannot copy: %v\n%s", err, out)
	}
	stop, refused := w.insist(copied)
	f()
	w.eventually("the copy's agent was refused, or not", func() string {
		runs := strings.Contains(fmt.Sprint(judge.Spans(w.events())), copied)
		return unless(refused() > 0 || runs, "it has not come so far")
	})
	stop()
	halt()
	w.eventually("the unit has come to rest", w.missing)
	fmt.Printf("copies: %s: the copy's agent was refused %d times\n", name, refused())
	checkRuns(w.t, name, w.events())
	checkOrder(w.t, w.events())
}

// drive changes the unit's settings until the function is called.
func (w *folder) drive() (halt func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			_ = w.command("set", "app", fmt.Sprintf("set=turn=%d", n)).Run() // it may be refused while the store is away
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	halt = func() { cancel(); running.Wait() }
	w.t.Cleanup(halt)
	return halt
}

// insist starts the agent of a folder again and again until stop is called. It counts
// how often that was refused.
func (w *folder) insist(dir string) (stop func(), refused func() int64) {
	w.t.Helper()
	e, err := home.Load(dir)
	check(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var count atomic.Int64
	running.Go(func() {
		for ctx.Err() == nil {
			cmd := exec.CommandContext(ctx, filepath.Join(e.ToolsDir(), "machine-agent"), "--machine", "0", "--env", dir)
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
			cmd.WaitDelay = 30 * time.Second
			if out, err := cmd.CombinedOutput(); err != nil && bytes.Contains(out, []byte("it is held by process")) {
				count.Add(1)
			}
			time.Sleep(300 * time.Millisecond) // as a service manager would
		}
	})
	stop = func() { cancel(); running.Wait() }
	w.t.Cleanup(stop)
	return stop, count.Load
}

// missing is what the record lacks of what the state knows.
func (w *folder) missing() (lack string) {
	w.t.Helper()
	e, err := home.Load(w.env())
	check(w.t, err)
	s, err := state.Open(w.t.Context(), e.State)
	check(w.t, err)
	defer s.Close()
	check(w.t, s.View(w.t.Context(), func(v *state.View) error {
		end, err := judge.EndOf(v)
		lack = strings.Join(judge.Missing(end, map[string][]judge.Event{"app/0": judge.Merge(w.events())}), "; ")
		return err
	}))
	return lack
}

// lockProgram holds the file's lock until its input ends.
const lockProgram = `
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
c.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
c.execute("ROLLBACK")
`

// lock locks the file until the function is called.
func (w *folder) lock() (release func()) {
	w.t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		need.Skip(w.t, "python3", "python3 is not installed")
	}
	cmd := exec.Command(python, "-c", lockProgram, filepath.Join(w.env(), "state", "state.db"))
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
