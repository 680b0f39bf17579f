package rack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/testscripts/kit/judge"
)

// TestWitness is the part of the test that runs on a host.
func TestWitness(t *testing.T) { judge.Witness(t) }

// settle waits until every unit has run all hooks that are due.
func (w *world) settle(after string) {
	w.t.Helper()
	took := w.eventually("everything is told after "+after, func() string {
		for unit, r := range w.records {
			data, err := os.ReadFile(w.hosts[r.host].Disk(r.path))
			if err != nil {
				return err.Error()
			}
			w.write(0, "/root/records/"+strings.ReplaceAll(unit, "/", "-"), string(data))
		}
		return w.lacks(0, judge.WitnessLine("/opt/bijou/rack.test", w.stateURL(), "/root/records"), judge.NothingMissing)
	})
	fmt.Printf("rack: %s: everything is told %.1f s after the load has ended\n", after, took.Seconds())
	w.judge()
}

// judge checks the records against the rules.
func (w *world) judge() {
	w.t.Helper()
	all := map[string][]judge.Event{}
	for unit, r := range w.records {
		events, err := judge.Read(w.hosts[r.host].Disk(r.path))
		check(w.t, err)
		all[unit] = events
	}
	for _, wrong := range judge.Wrong(all) {
		w.t.Error(wrong)
	}
}

// findRecords finds the files of the units' recorders.
func (w *world) findRecords(units int) {
	w.t.Helper()
	for i := range w.hosts {
		logs := w.on(i, "find /root/.bijou /var/lib/bijou -name recorder.log 2>/dev/null || true")
		for _, path := range strings.Fields(logs) {
			w.records[judge.UnitOf(filepath.Base(filepath.Dir(path)))] = record{i, path}
		}
	}
	if len(w.records) != units {
		w.t.Fatalf("there are the records of %d units, not %d: %v", len(w.records), units, w.records)
	}
}

// bury records in the logs of a host's units that all processes on the host were killed. It finishes before
// any of them restarts.
func (w *world) bury(host int) {
	w.t.Helper()
	for _, r := range w.records {
		if r.host == host {
			check(w.t, judge.Append(w.hosts[host].Disk(r.path), judge.Event{Event: judge.Killed}))
		}
	}
}
