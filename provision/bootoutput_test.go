package provision

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/logs"
	"bijou/testscripts/fakes/dummy"
)

// logged returns the log lines of machine 1.
func (w *world) logged() (lines []string) {
	w.t.Helper()
	err := w.state.View(w.t.Context(), func(v *state.View) error {
		all, err := logs.Read(v, logs.Filter{Sources: []string{"machine-1"}})
		lines = nil
		for _, l := range all {
			lines = append(lines, l.Level+" "+l.Message)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return lines
}

// TestRunTellsOfBoot checks that the machine's record shows the last line of the boot's output, and its
// log all lines.
func TestRunTellsOfBoot(t *testing.T) {
	inWorld(t, func(w *world) {
		w.order(startOrder(dummy.StartOrder{
			Boot: []string{"unpacking", "\x1b[32mfetching\x1b[0m 1 %\rfetching 2 %\r", "\r\n\rbooting\twell\r\r"}, Pause: 10 * time.Second,
		}))
		id := w.add()
		for _, want := range []string{"unpacking", "fetching 2 %", "booting well", ""} {
			w.settle(2 * time.Second)
			if m, err := w.machine(id); err != nil || m.Message != want {
				t.Errorf("message %q, error %v; want %q", m.Message, err, want)
			}
			w.settle(7 * time.Second)
		}
		w.wantInstance(id, "dummy-1-1")
		if diff := cmp.Diff([]string{"INFO unpacking", "INFO booting well"}, w.logged()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRunLogsFailures checks that the log has the failure of a start below the output of that start.
func TestRunLogsFailures(t *testing.T) {
	inWorld(t, func(w *world) {
		w.order(startOrder(dummy.StartOrder{Boot: []string{"half of it"}, Fail: "no disk"}))
		w.wantInstance(w.add(), "")
		if diff := cmp.Diff([]string{"INFO half of it", "ERROR cannot start: no disk"}, w.logged()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRunBoundsBootOutput checks that a very long output of a boot is cut, and that the log says so.
func TestRunBoundsBootOutput(t *testing.T) {
	inWorld(t, func(w *world) {
		var torrent []string
		for n := range 1000 {
			torrent = append(torrent, fmt.Sprint(n, " ", strings.Repeat("x", 10_000)))
		}
		w.order(startOrder(dummy.StartOrder{Boot: torrent}))
		w.wantInstance(w.add(), "dummy-1-1")
		lines := w.logged()
		size := 0
		for _, l := range lines {
			size += len(l)
		}
		last := lines[len(lines)-1]
		if size > maxBootChunk+4096 || !strings.Contains(last, "lines were left out, because too many came at once") {
			t.Errorf("%d bytes were logged; the last line is %.100q", size, last)
		}
	})
}
