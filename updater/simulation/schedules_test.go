// Package simulation simulates fleets of boot servers: a store, workers, updaters and a clock that jumps from
// event to event. Faults of all kinds happen at random. The code of the product's leader and workers makes
// all decisions.
package simulation

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bijou/testscripts/kit/need"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// TestSchedules runs fleets through random schedules of crashes, partitions, restarts, deaths and commands.
// It checks the updater's promises at each event. Then the faults end, an operator follows the documentation,
// and the fleet must reach the newest release. The test prints the seed of a schedule that fails.
// BIJOU_SIM_SEED=n runs the schedule with this seed and prints its events.
func TestSchedules(t *testing.T) {
	manifest := simManifest(t)
	if seed, err := strconv.ParseUint(os.Getenv("BIJOU_SIM_SEED"), 10, 64); err == nil {
		w := schedule(seed, manifest, true)
		t.Logf("%s\nfleet: %s", strings.Join(w.trace, "\n"), w.state())
		t.Fatalf("seed %d: %q", seed, w.violations)
	}
	n := 500
	if need.LongRun() {
		n = 10_000
	}
	total, failed := runSchedules(t, n, manifest)
	if len(failed) > 0 {
		t.Errorf("%d of %d schedules failed; BIJOU_SIM_SEED=%d runs the first again", len(failed), n, slices.Min(failed))
	}
	t.Logf("%d schedules: %s", n, total)
	for _, fault := range expected() {
		if total.faults[fault] == 0 {
			t.Errorf("in no schedule: %s", fault)
		}
	}
}

// expected returns the events that must have happened in some schedule. If there are many schedules, the list
// includes rare events.
func expected() []string {
	all := []string{
		"worker killed", "updater killed", "partition", "server died", "install failed", "no hand-over", "step failed", "member did not come up",
		"command recover", "command retry", "command stop", "command pause", "command resume", "command downgrade", "command update", "command config",
		"server added", "server unregistered that lives", "processes hung", "clock set", "power cut", "journal not written", "journal lost", "files replaced", "replaced files refused",
		"component drifted", "component ill", "ill for long", "ill reported", "what was ill is well", "source of releases away", "outage for long", "outage reported", "command repair", "repaired", "components repaired",
	}
	if need.LongRun() {
		all = append(all, "server registered again", "turn of a stale request", "result of a stale request", "stopped without progress")
	}
	return all
}

// tally counts the events of many schedules.
type tally struct {
	steps, reports int
	faults         map[string]int
}

func (t tally) String() string {
	var words []string
	for _, f := range slices.Sorted(maps.Keys(t.faults)) {
		words = append(words, fmt.Sprintf("%s %d", f, t.faults[f]))
	}
	return fmt.Sprintf("%d steps, %d reports; %s", t.steps, t.reports, strings.Join(words, ", "))
}

// runSchedules runs n schedules on all processors.
func runSchedules(t *testing.T, n int, manifest release.Manifest) (total tally, failed []int) {
	total.faults = map[string]int{}
	var next atomic.Int64
	var lock sync.Mutex
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := next.Add(1); seed <= int64(n); seed = next.Add(1) {
				w := schedule(uint64(seed), manifest, false)
				lock.Lock()
				total.steps += w.steprun
				total.reports += w.ends
				for f, k := range w.faults {
					total.faults[f] += k
				}
				if len(w.violations) > 0 {
					failed = append(failed, int(seed))
					if len(failed) < 5 {
						t.Errorf("seed %d: %q", seed, w.violations)
					}
				}
				lock.Unlock()
			}
		})
	}
	workers.Wait()
	return total, failed
}

// schedule runs one schedule.
func schedule(seed uint64, manifest release.Manifest, tracing bool) *world {
	w := newWorld(seed, manifest, false)
	w.tracing = tracing
	w.mischiefOnly()
	if len(w.violations) > 0 {
		return w
	}
	w.settle()
	w.run(w.now.Add(2*time.Hour), w.settled)
	if len(w.violations) > 0 {
		return w
	}
	if !w.settled() {
		w.violate("the fleet does not come to rest: %s", w.state())
	}
	w.checkReports()
	return w
}

// mischiefOnly runs the part of a schedule in which faults happen.
func (w *world) mischiefOnly() {
	w.run(w.now.Add(w.between(time.Minute, 6*time.Minute)), func() bool { return false })
}

// settled reports whether all live servers have the complete newest release and the leader has reported that.
func (w *world) settled() bool {
	r := get[record.Request](w.store, keys.Current)
	if r == nil || !r.Succeeded() || r.Version != w.store.values[keys.Release] || len(w.store.snapshot("").Servers) != len(r.Servers) {
		return false
	}
	for _, h := range w.servers {
		if !w.registered(h.lrn) {
			continue
		}
		for name, m := range h.members {
			if !partOf(*r, h) || !m.up || m.version != w.current(r.Version).plan(release.Deb).component(name) {
				return false
			}
		}
	}
	return true
}

// state describes the fleet.
func (w *world) state() string {
	words := []string{fmt.Sprintf("release %v, %+v", w.store.values[keys.Release], w.store.values[keys.Current])}
	for _, h := range w.servers {
		words = append(words, fmt.Sprintf("server %d: dead %t, cut %t, worker %+v, journal %+v, record %+v", h.lrn, h.dead, h.cut, h.worker, h.journal, w.store.values[keys.Worker(h.lrn)]))
		for _, name := range slices.Sorted(maps.Keys(h.members)) {
			words = append(words, fmt.Sprintf("  %s %+v", name, *h.members[name]))
		}
	}
	return strings.Join(words, "\n")
}

// simManifest returns a manifest with each strategy, some twice.
func simManifest(t *testing.T) release.Manifest {
	t.Helper()
	m, err := release.ReadManifest("sim.yaml", []byte(`
components:
- {name: cke, strategy: stop-all, services: [cke]}
- {name: vault, strategy: stop-all, services: [vault]}
- {name: etcd, strategy: rolling}
- {name: sabakan, strategy: any}
- {name: sabakan-contents, strategy: leader-once, contents: {key: sabakan}}
- {name: serfs, strategy: rolling}
- {name: ep, strategy: any}
`))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
