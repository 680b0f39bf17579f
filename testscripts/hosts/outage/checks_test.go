package outage

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// soon is the longest time in which a command must report that the store is away: a few seconds,
	// with slack for a busy machine.
	soon = 15 * time.Second
	// patient is the same limit for a command that reached the store before the store went away. Such a
	// command waits up to half a minute for the store (callTimeout in state/store/etcd). It usually succeeds,
	// since the store is back by then.
	patient = 90 * time.Second
)

func refusals(all []answer) (refused []answer) {
	for _, a := range all {
		if a.code != 0 {
			refused = append(refused, a)
		}
	}
	return refused
}

// checkRefusal checks that a command failed in time, with one clear error and exit code 1.
func (w *world) checkRefusal(a answer, within time.Duration) {
	w.t.Helper()
	errors := 0
	for line := range strings.Lines(a.err) {
		switch {
		case strings.HasPrefix(line, "error: "):
			errors++
		case !strings.HasPrefix(line, "hint: ") && !strings.HasPrefix(line, "warning: "):
			w.t.Errorf("unexpected line %q of %s", line, a)
		}
	}
	if a.code != 1 || errors != 1 || a.out != "" || a.lasted > within {
		w.t.Errorf("want one error within %v, and exit 1: %s", within, a)
	}
}

// trouble returns the agents' warnings since the mark, with the number of times that each was logged.
func (w *world) trouble(mark int) map[string]int {
	seen := map[string]int{}
	for line := range strings.Lines(w.log(mark)) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			_, what, _ := strings.Cut(line, "level=")
			seen[strings.TrimSpace(what)]++
		}
	}
	return seen
}

// tellTrouble prints the agents' warnings since the mark, each once.
func (w *world) tellTrouble(mark int) {
	for line, n := range w.trouble(mark) {
		w.t.Logf("%d × %s", n, line)
	}
}

// cpuTime returns a process's CPU time so far (proc(5), fields 14 and 15, in hundredths of a second on
// Linux).
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	check(t, err)
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	var ticks time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		check(t, err)
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}
