package juju

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/multicall/console"
	"bijou/state/logs"
	"bijou/testscripts/kit/need"
)

// runningCommand is a command that runs until it is stopped.
type runningCommand struct {
	t      *testing.T
	lines  *bufio.Scanner
	cancel context.CancelFunc
	errs   bytes.Buffer
	code   chan int
}

// startCommand starts a command that runs until it is stopped.
func (w *testEnv) startCommand(args ...string) *runningCommand {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	read, write := io.Pipe()
	// The buffer lets the command end even if nobody reads its exit code.
	f := &runningCommand{t: w.t, lines: bufio.NewScanner(read), cancel: cancel, code: make(chan int, 1)}
	go func() {
		code := Main(ctx, console.Streams{In: strings.NewReader(""), Out: write, Err: &f.errs}, w.parts, args)
		write.Close()
		f.code <- code
	}()
	return f
}

// nextLine returns the next line of the command's output.
func (f *runningCommand) nextLine() string {
	f.t.Helper()
	if !f.lines.Scan() {
		f.t.Fatalf("it has ended: %v", f.lines.Err())
	}
	return f.lines.Text()
}

// stop interrupts the command, and returns its exit code and stderr.
func (f *runningCommand) stop() (code int, stderr string) {
	f.cancel()
	for f.lines.Scan() {
	}
	return <-f.code, f.errs.String()
}

// appendLog appends lines to a source's log, numbered from first.
func (w *testEnv) appendLog(source, level string, first, n int) {
	w.t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	var lines []logs.Line
	for i := range n {
		lines = append(lines, logs.Line{Time: at.Add(time.Duration(first+i) * time.Second), Level: level, Message: fmt.Sprint("m", first+i)})
	}
	b := w.backgrounds[filepath.Join(w.home.Dir, "default", "machines", "0")]
	if err := logs.Append(w.t.Context(), b.state, source, lines); err != nil {
		w.t.Fatal(err)
	}
}

func TestDebugLogFollows(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	w.appendLog("a/0", "INFO", 0, 30)
	w.appendLog("b/0", "INFO", 30, 3)
	f := w.startCommand("debug-log", "-f", "-n", "2", "--unit", "[ab]/*")
	var got []string
	take := func(n int) {
		for range n {
			fields := strings.Fields(f.nextLine())
			got = append(got, fields[2]+" "+fields[4])
		}
	}
	take(2)
	w.appendLog("c/0", "INFO", 40, 1) // a source that was not requested
	w.appendLog("b/0", "INFO", 41, 1)
	take(1)
	w.appendLog("a/0", "INFO", 42, 1) // none of the last two lines is from it
	take(1)
	if diff := cmp.Diff([]string{"b/0 m31", "b/0 m32", "b/0 m41", "a/0 m42"}, got); diff != "" {
		t.Error(diff)
	}
	if code, errs := f.stop(); code != 0 || errs != "" {
		t.Errorf("exit %d, %q", code, errs)
	}
}

func TestTailTellsWhatIsMissing(t *testing.T) {
	var errs bytes.Buffer
	o := &operator{streams: console.Streams{Out: io.Discard, Err: &errs}}
	tl := &logFollower{o: o, printedEnds: map[string]int64{"a/0": 10}}
	if err := tl.printLines([]logs.Line{{Source: "a/0", Seq: 15}, {Source: "b/0", Seq: 1}}, map[string]int64{"a/0": 15, "b/0": 1}); err != nil {
		t.Fatal(err)
	}
	if got := errs.String(); got != "warning: 4 lines of a/0 came too fast and are not shown\n" {
		t.Errorf("said %q", got)
	}
}

func TestDebugLogRefuses(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	w.mustFail(2, "-1 lines", "debug-log", "--lines=-1")
	w.mustFail(2, "not a pattern", "debug-log", "--unit", "[")
	w.mustFail(2, "noisy", "debug-log", "--unit", "x/0", "--level", "noisy")
	w.mustFail(1, `no unit, application or machine matches "x/*"`, "debug-log", "--unit", "x/*")
	w.mustFail(1, "hint: there are no units", "debug-log", "--include", "unit-x-0")
	w.mustFail(2, "can't be used together", "debug-log", "--color", "--no-color")
	w.mustFail(2, "want a number", "debug-log", "--tail=x")
}

func TestLogPattern(t *testing.T) {
	for name, want := range map[string]string{
		"web/0": "web/0", "unit-web-0": "web/0", "unit-web-db-10": "web-db/10", "web": "web/*", "application-web": "web/*", "unit-web": "unit-web/*",
		"machine-0": "machine-0", "machine-*": "machine-*", "machine-agent": "machine-agent/*", "0": "machine-0", "web*": "web*/*", "*/0": "*/0",
	} {
		t.Run(name, func(t *testing.T) {
			if got := logPattern(name); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestDebugLogFollowsAndHowMuch(t *testing.T) {
	n := func(n int) *int { return &n }
	for name, tt := range map[string]struct {
		c        debugLogCmd
		terminal bool
		follows  bool
		lines    int
	}{
		"a pipe":              {debugLogCmd{}, false, false, 0},
		"a terminal":          {debugLogCmd{}, true, true, 10},
		"--no-tail":           {debugLogCmd{NoTail: true}, true, false, 0},
		"--tail in a pipe":    {debugLogCmd{Tail: tailFlag{set: true}}, false, true, 10},
		"--tail 5":            {debugLogCmd{Tail: tailFlag{set: true, lines: n(5)}}, true, false, 5},
		"--limit 3":           {debugLogCmd{Limit: n(3)}, true, false, 3},
		"-n 4 on a terminal":  {debugLogCmd{Lines: n(4)}, true, true, 4},
		"--replay":            {debugLogCmd{Replay: true}, true, true, 0},
		"--replay in a pipe":  {debugLogCmd{Replay: true}, false, false, 0},
		"--since, a terminal": {debugLogCmd{Since: "1h"}, true, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := tt.c
			c.Follow = c.follows(tt.terminal)
			if c.Follow != tt.follows || c.maxLines() != tt.lines {
				t.Errorf("follows %t, %d lines", c.Follow, c.maxLines())
			}
		})
	}
}

func TestStatusWatches(t *testing.T) {
	need.Whole(t)
	for _, format := range []string{"tabular", "yaml", "json", "dot"} {
		t.Run(format, func(t *testing.T) {
			w := newTestEnv(t)
			w.mustRun("bootstrap")
			w.mustRun("deploy", w.writeCharm("trivial", ""))
			f := w.startCommand("status", "--watch", "--format", format, "tr*")
			want := map[string]string{"tabular": "  yes", "yaml": "exposed: true", "json": `"exposed":true`, "dot": "peripheries"}[format]
			if line := f.nextLine(); strings.Contains(line, want) {
				t.Errorf("at first %q", line)
			}
			w.mustRun("expose", "trivial")
			separators := 0
			for line := ""; !strings.Contains(line, want); {
				if line = f.nextLine(); strings.HasSuffix(line, "---") {
					separators++
				}
			}
			if wantSeparators := map[bool]int{true: 0, false: 1}[format == "json"]; separators != wantSeparators {
				t.Errorf("%d separators", separators)
			}
			if code, errs := f.stop(); code != 0 || errs != "" {
				t.Errorf("exit %d, %q", code, errs)
			}
		})
	}
}
