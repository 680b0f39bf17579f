package hookexec

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"bijou/state/osutil"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

// charm is a charm directory under test, with the output of its hooks.
type charm struct {
	t      *testing.T
	dir    string
	runner *Runner

	mu  sync.Mutex
	got map[Stream][]string
}

func newCharm(t *testing.T) *charm {
	c := &charm{t: t, dir: t.TempDir(), runner: &Runner{}, got: map[Stream][]string{}}
	t.Cleanup(c.runner.Close)
	if err := os.MkdirAll(filepath.Join(c.dir, "charm", "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *charm) script(name, body string, mode os.FileMode) {
	path := filepath.Join(c.dir, "charm", name)
	if err := os.WriteFile(path, []byte("#!/bin/bash\n"+body), mode); err != nil {
		c.t.Fatal(err)
	}
}

// file writes an executable file with exactly this content.
func (c *charm) file(name, content string) {
	if err := os.WriteFile(filepath.Join(c.dir, "charm", name), []byte(content), 0o755); err != nil {
		c.t.Fatal(err)
	}
}

func (c *charm) spec(hook string) Spec {
	return Spec{
		ID:       "op-1",
		Hook:     hook,
		CharmDir: filepath.Join(c.dir, "charm"),
		Env:      Environment(Facts{Hook: hook, Tools: "/tools", CharmDir: filepath.Join(c.dir, "charm")}, os.Getenv),
		Record:   filepath.Join(c.dir, "hook.json"),
		Output: func(s Stream, _ time.Time, line string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.got[s] = append(c.got[s], line)
		},
	}
}

func (c *charm) run(hook string) Outcome { return c.runner.Run(c.t.Context(), c.spec(hook)) }

func TestOutcomes(t *testing.T) {
	c := newCharm(t)
	c.script("hooks/good", "exit 0", 0o755)
	c.script("hooks/bad", "exit 3", 0o755)
	c.script("hooks/shot", "kill -9 $$", 0o755)
	c.script("hooks/plain", "exit 0", 0o644)
	c.file("hooks/crlf", "#!/bin/bash\r\nexit 0\r\n")
	c.file("hooks/crlf-env", "#!/usr/bin/env bash\r\nexit 0\r\n")
	c.file("hooks/lost", "#!/no-such-program -x\nexit 0\n")
	c.file("hooks/found-env", "#!/usr/bin/env sh\nexit 127\n")
	for _, tc := range []struct {
		hook string
		want Outcome
	}{
		{"good", Outcome{}},
		{"bad", Outcome{Failure: "exit code 3", Code: 3}},
		{"shot", Outcome{Failure: "killed by signal 9 (killed)"}},
		{"plain", Outcome{Failure: "hooks/plain is not executable"}},
		{"none", Outcome{Missing: true}},
		{"crlf", Outcome{Failure: `exit code 127: the lines of hooks/crlf end in CRLF, so the system looks for an interpreter "/bin/bash\r": save the file with LF only`, Code: 127}},
		{"crlf-env", Outcome{Failure: `exit code 127: the lines of hooks/crlf-env end in CRLF, so the system looks for an interpreter "/usr/bin/env bash\r": save the file with LF only`, Code: 127}},
		{"lost", Outcome{Failure: `exit code 127: hooks/lost needs the interpreter "/no-such-program", which does not exist`, Code: 127}},
		{"found-env", Outcome{Failure: "exit code 127", Code: 127}},
	} {
		t.Run(tc.hook, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, c.run(tc.hook)); diff != "" {
				t.Errorf("%s: %s", tc.hook, diff)
			}
		})
	}
}

func TestDispatchWins(t *testing.T) {
	c := newCharm(t)
	c.script("hooks/start", "echo hook", 0o755)
	c.script("dispatch", `echo "$JUJU_DISPATCH_PATH from $PWD"`, 0o755)
	c.run("start")
	if diff := cmp.Diff([]string{"hooks/start from " + c.dir + "/charm"}, c.got[Stdout]); diff != "" {
		t.Error(diff)
	}
}

func TestOutputIsCutIntoLines(t *testing.T) {
	c := newCharm(t)
	c.script("hooks/talk", `echo one; echo two >&2; printf 'a\xffb\n'; head -c 100000 /dev/zero | tr '\0' x; echo; printf last`, 0o755)
	c.run("talk")
	want := map[Stream][]string{
		Stdout: {"one", `a\xffb`, strings.Repeat("x", MaxLine), strings.Repeat("x", 100000-MaxLine), "last"},
		Stderr: {"two"},
	}
	if diff := cmp.Diff(want, c.got); diff != "" {
		t.Error(diff)
	}
}

func TestHookSeesThreeDescriptorsItsOwnSessionAndNothingElse(t *testing.T) {
	t.Setenv("SECRET_OF_THE_AGENT", "x")
	c := newCharm(t)
	c.script("hooks/look", `
[ -z "$(cat)" ] && echo empty
read -r _ _ _ _ pgrp sid _ < /proc/$$/stat
[ $pgrp = $$ ] && [ $sid = $$ ] && echo leader
env | grep -c SECRET_OF_THE_AGENT
echo "$SHLVL" "${PATH%%:*}"
exec ls -l /proc/self/fd
`, 0o755)
	c.run("look")
	var fds []string
	out := c.got[Stdout]
	for _, line := range out[min(5, len(out)):] {
		if words := strings.Fields(line); len(words) > 3 {
			fds = append(fds, words[len(words)-3])
		}
	}
	if diff := cmp.Diff([]string{"empty", "leader", "0", "1 /tools"}, out[:4]); diff != "" {
		t.Error(diff, c.got[Stderr])
	}
	if diff := cmp.Diff([]string{"0", "1", "2", "3"}, fds); diff != "" { // ls itself opens descriptor 3 for the directory
		t.Error(diff, out)
	}
}

func TestDaemonIsNeitherWaitedForNorKilled(t *testing.T) {
	need.Whole(t)
	c := newCharm(t)
	pidfile := filepath.Join(c.dir, "pid")
	c.script("hooks/start", `
( while echo still here; do echo x >> `+c.dir+`/alive; sleep 0.05; done ) &
echo $! > `+pidfile, 0o755)
	s := c.spec("start")
	s.OutputTimeout = 100 * time.Millisecond
	if got := c.runner.Run(t.Context(), s); got.Failure != "" || !got.Left || got.Held < s.OutputTimeout {
		t.Fatalf("%+v", got)
	}
	pid := readPID(t, pidfile)
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	grows(t, c.dir+"/alive")
	c.runner.Close() // after that the agent has ended, and the daemon writes into its own pipe
	grows(t, c.dir+"/alive")
}

// TestDaemonThatWritesWithoutPause checks that a hook ends although the daemon that it leaves behind fills the
// pipe faster than the agent empties it.
func TestDaemonThatWritesWithoutPause(t *testing.T) {
	c := newCharm(t)
	pidfile := filepath.Join(c.dir, "pid")
	c.script("hooks/start", `echo started
yes "$(printf %01000d 0)" &
echo $! > `+pidfile, 0o755)
	s := c.spec("start")
	s.OutputTimeout = 50 * time.Millisecond
	passOn := s.Output
	s.Output = func(from Stream, at time.Time, line string) {
		passOn(from, at, line)
		time.Sleep(time.Millisecond)
	}
	ended := make(chan Outcome, 1)
	go func() { ended <- c.runner.Run(t.Context(), s) }()
	eventually(t, "the hook leaves a daemon", func() bool { st, err := os.Stat(pidfile); return err == nil && st.Size() > 0 })
	pid := readPID(t, pidfile)
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })

	select {
	case got := <-ended:
		if got.Failure != "" || !got.Left || got.Held < s.OutputTimeout {
			t.Errorf("%+v", got)
		}
	case <-time.After(20 * time.Second):
		_ = unix.Kill(pid, unix.SIGKILL)
		t.Fatalf("the hook still runs: %+v", <-ended)
	}
	if c.got[Stdout][0] != "started" {
		t.Errorf("the first line is %q", c.got[Stdout][0])
	}
}

// grows waits until the file has grown several times.
func grows(t *testing.T, path string) {
	t.Helper()
	size := func() int64 {
		st, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return st.Size()
	}
	from := size()
	eventually(t, path+" grows", func() bool { return size() > from+10 })
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	await.Until(t, await.Poll{Limit: time.Minute}, what, ok)
}

func readPID(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(data)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestInterruptKillsTheGroup(t *testing.T) {
	c := newCharm(t)
	c.script("hooks/hang", `sleep 1000 & echo $! > `+c.dir+`/child; sleep 1000`, 0o755)
	ctx, cancel := context.WithCancel(t.Context())
	s := c.spec("hang")
	s.Fault = func(point string) {
		if point != "after-let-go" {
			return
		}
		eventually(t, "the hook has a child", func() bool { st, err := os.Stat(c.dir + "/child"); return err == nil && st.Size() > 0 })
		cancel()
	}
	if diff := cmp.Diff(Outcome{Interrupted: true}, c.runner.Run(ctx, s)); diff != "" {
		t.Fatal(diff)
	}
	if st, err := osutil.ReadProcStat(readPID(t, c.dir+"/child")); err == nil && !st.IsGone() {
		t.Error("a child still runs")
	}
}

// TestInterruptTerminatesTheGroup checks that an interrupted hook gets SIGTERM, is killed if it ignores the
// signal, and leaves no process of its group running.
func TestInterruptTerminatesTheGroup(t *testing.T) {
	need.Whole(t)
	c := newCharm(t)
	c.script("hooks/tidy", `trap 'echo tidied; exit 0' TERM; sleep 1000 & echo $! >`+c.dir+`/child; wait`, 0o755)
	c.script("hooks/deaf", `trap '' TERM; sleep 1000 & echo $! >`+c.dir+`/child; wait`, 0o755)
	for name, want := range map[string][]string{"tidy": {"tidied"}, "deaf": nil} {
		_ = os.Remove(c.dir + "/child")
		s, interrupt := c.spec(name), make(chan struct{})
		s.Interrupt = interrupt
		s.Fault = func(point string) {
			if point == "after-let-go" {
				eventually(t, "the hook has a child", func() bool { st, err := os.Stat(c.dir + "/child"); return err == nil && st.Size() > 0 })
				close(interrupt)
			}
		}
		if diff := cmp.Diff(Outcome{Interrupted: true}, c.runner.Run(t.Context(), s)); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(want, c.got[Stdout]); diff != "" {
			t.Error(diff)
		}
		if st, err := osutil.ReadProcStat(readPID(t, c.dir+"/child")); err == nil && !st.IsGone() {
			t.Errorf("%s: a child still runs", name)
		}
		c.got[Stdout] = nil
	}
}

func TestHeldBackProcessEndsWithItsAgent(t *testing.T) {
	c := newCharm(t)
	c.script("hooks/start", "touch "+c.dir+"/ran", 0o755)
	s := c.spec("start")
	out, err := newOutputReader(0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.awaitEnd()
	p, err := startGated(s, []string{filepath.Join(s.CharmDir, "hooks", "start")}, out)
	out.startReading(s)
	if err != nil {
		t.Fatal(err)
	}
	p.gate.Close() // as the kernel does when the agent dies
	if diff := cmp.Diff(Outcome{Failure: "exit code 125", Code: 125}, p.wait(t.Context(), nil)); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(c.dir + "/ran"); err == nil {
		t.Error("the hook ran without having been let go")
	}
}

func TestBusyScriptIsWaitedFor(t *testing.T) {
	c := newCharm(t)
	c.script("hooks/start", "exit 0", 0o755)
	w, err := os.OpenFile(filepath.Join(c.dir, "charm/hooks/start"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(50*time.Millisecond, func() { w.Close() })
	defer timer.Stop()
	if diff := cmp.Diff(Outcome{}, c.run("start")); diff != "" {
		t.Error(diff)
	}
}

func TestManyAtOnce(t *testing.T) {
	c := newCharm(t)
	c.script("hooks/start", "exit 0", 0o755)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			s := c.spec("start")
			s.Record += fmt.Sprint(i)
			if diff := cmp.Diff(Outcome{}, c.runner.Run(t.Context(), s)); diff != "" {
				t.Error(diff)
			}
		})
	}
	wg.Wait()
}

// TestOutputsKeepTheirOrder checks that a slow reader of the output gets one line at a time, in the
// order in which the hook wrote them to stdout and stderr.
func TestOutputsKeepTheirOrder(t *testing.T) {
	c := newCharm(t)
	c.script("hooks/talk", `for n in 1 3 5 7 9; do
	echo $n; until [ -e `+c.dir+`/$n ]; do sleep 0.01; done
	echo $((n + 1)) >&2; touch `+c.dir+`/said-$((n + 1)); until [ -e `+c.dir+`/$((n + 1)) ]; do sleep 0.01; done
done`, 0o755)
	s := c.spec("talk")
	var lines []string
	var times []time.Time
	var busy atomic.Bool
	s.Output = func(_ Stream, at time.Time, line string) {
		if !busy.CompareAndSwap(false, true) {
			t.Error("two lines at once")
		}
		defer busy.Store(false)
		lines, times = append(lines, line), append(times, at)
		if err := os.WriteFile(c.dir+"/"+line, nil, 0o600); err != nil {
			t.Error(err)
		}
		if n, _ := strconv.Atoi(line); n%2 == 1 { // the next line of the other output is already written
			eventually(t, "the other output has its next line", func() bool { _, err := os.Stat(fmt.Sprintf("%s/said-%d", c.dir, n+1)); return err == nil })
			time.Sleep(20 * time.Millisecond) // Output must not receive that line during this
		}
	}
	c.runner.Run(t.Context(), s)
	if diff := cmp.Diff(strings.Fields("1 2 3 4 5 6 7 8 9 10"), lines); diff != "" {
		t.Error(diff)
	}
	if !slices.IsSortedFunc(times, time.Time.Compare) {
		t.Errorf("lines were read at %v", times)
	}
}

// TestChildIsWaitedFor checks that the runner waits for output while a child of the hook holds it open,
// and logs that it waits.
func TestChildIsWaitedFor(t *testing.T) {
	need.Whole(t)
	c := newCharm(t)
	c.script("hooks/start", `( while [ ! -e `+c.dir+`/go ]; do sleep 0.05; done; echo late ) & exit 0`, 0o755)
	s := c.spec("start")
	s.OutputTimeout = time.Minute
	timer := time.AfterFunc(1500*time.Millisecond, func() { _ = os.WriteFile(c.dir+"/go", nil, 0o600) })
	defer timer.Stop()
	if got := c.runner.Run(t.Context(), s); got.Failure != "" || got.Left {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{"late"}, c.got[Stdout]); diff != "" {
		t.Error(diff)
	}
}
