package outage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/offclock"
)

// TestClock sets the clock of a working fleet an hour forward and back, over both stores. No session may be
// lost. Each change must reach its hooks once.
func TestClock(t *testing.T) {
	need.Long(t)
	dir := t.TempDir()
	product, offset := filepath.Join(dir, "bijou"), filepath.Join(dir, "offset")
	offclock.Build(t, product, offset)
	links := filepath.Join(dir, "links")
	if out, err := exec.Command(product, "install", "--dir", links).CombinedOutput(); err != nil {
		t.Fatalf("cannot install: %v\n%s", err, out)
	}
	t.Setenv("PATH", links+":"+os.Getenv("PATH"))
	for _, store := range []struct {
		name string
		url  func(t *testing.T) string
	}{
		{"SQLite", func(*testing.T) string { return "" }},
		{"etcd", func(t *testing.T) string { return etcdtest.For(t, etcdtest.Options{}).URL("/outage") }},
	} {
		t.Run(store.name, func(t *testing.T) {
			setOff(t, offset, 0)
			w := newWorld(t, store.url(t))
			services := []string{"hub", "east", "west"}
			w.deployFleet(services, 3)
			rest(3 * time.Second)
			mark := w.mark()
			l := w.drive(services)
			jumps := []int{3600, 0, -3600, 3600, 0}
			for _, seconds := range jumps {
				setOff(t, offset, seconds)
				rest(12 * time.Second) // longer than a session lasts
			}
			for _, a := range refusals(l.halt()) {
				if !refusedByRule(a) {
					t.Errorf("refused though the store was there: %s", a)
				}
			}
			w.settle("the clock jumped")
			w.judge("clock, "+store.name, fmt.Sprintf("%d jumps of one or two hours", len(jumps)))
			w.checkFarApart(mark)
			for line, n := range w.trouble(mark) {
				if n == 1 && store.name == "etcd" && isClosedConnection(line) {
					t.Logf("%d × %s", n, line)
					continue
				}
				t.Errorf("%d × %s", n, line)
			}
		})
	}
}

// isClosedConnection reports whether a line is the agent's message that gRPC has closed its connection. Only
// a commit that was running is then repeated. gRPC measures silence with the machine's clock, so a jump of
// the clock looks like silence.
func isClosedConnection(line string) bool {
	return strings.Contains(line, "cannot continue; retrying until it succeeds") && strings.Contains(line, "keepalive ping failed to receive ACK")
}

// setOff sets the clock off by the given number of seconds in one write.
func setOff(t *testing.T, file string, seconds int) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	check(t, err)
	_, err = fmt.Fprintf(f, "%+08d", seconds)
	check(t, errors.Join(err, f.Close()))
}

// checkFarApart checks that the log has times that are two hours apart. Without them, the clock has not
// jumped.
func (w *world) checkFarApart(mark int) {
	w.t.Helper()
	var first, last time.Time
	for line := range strings.Lines(w.log(mark)) {
		stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			continue
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	if apart := last.Sub(first); apart < 119*time.Minute {
		w.t.Errorf("the log's times are only %v apart", apart)
	}
}
