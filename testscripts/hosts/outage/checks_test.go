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
	// soon is the most that a command may take to say that the store is away: a few
	// seconds, with slack for a busy machine.
	soon = 15 * time.Second
	// patient is the same for a command that has reached the store before it went: it
	// waits half a minute for it to be back (state/store/etcd), mostly with success.
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

// checkRefusal wants one clear error, exit code 1, and that within a time.
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

// trouble is what the agents have warned of since the mark, and how often.
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

// tellTrouble prints what the agents have warned of since the mark, each thing once.
func (w *world) tellTrouble(mark int) {
	for line, n := range w.trouble(mark) {
		w.t.Logf("%d × %s", n, line)
	}
}

// cpuTime is what a process has used so far (proc(5), fields 14 and 15, in the
// hundredths of a second that Linux counts in).
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
