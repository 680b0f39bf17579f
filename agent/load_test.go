package agent

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/kit/statetest"
)

// many deploys a trivial charm with n units, and waits until all have started. It waits for each of their
// hooks in turn, since no single timeout fits all of them.
func many(t testing.TB, n int) {
	st, _ := statetest.SQLite(t)
	r := newRig(t, st)
	units := statetest.AddService(t, st, r.recorder(statetest.Meta("app", "provides: {}\n"), hooks(), nil), n)
	r.start()
	for _, hook := range []string{"install", "config-changed", "start"} {
		for _, u := range units {
			r.awaitNote(u.Name, hook)
		}
	}
	for _, u := range units {
		r.awaitState(u.Name, "started")
	}
}

func TestFiftyUnits(t *testing.T) { many(t, 50) }

// BenchmarkIdleUnits measures a process with 500 idle units. Run it with -benchtime 1x.
func BenchmarkIdleUnits(b *testing.B) {
	const units, idle = 500, 10 * time.Second
	many(b, units)
	before := cpuTicks(b)
	for b.Loop() {
		time.Sleep(idle)
	}
	b.ReportMetric(float64(cpuTicks(b)-before)/idle.Seconds()/float64(b.N), "%cpu")
	b.ReportMetric(resident(b), "MiB")
	b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
}

// cpuTicks returns the process's CPU time, in hundredths of a second.
func cpuTicks(t testing.TB) int {
	data, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(data))
	user, _ := strconv.Atoi(fields[13])
	system, _ := strconv.Atoi(fields[14])
	return user + system
}

// resident returns the process's memory.
func resident(t testing.TB) float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "VmRSS:")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}
