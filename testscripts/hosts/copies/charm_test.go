package copies

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/judge"
)

// limit is several times longer than the longest wait on an idle machine.
const limit = 3 * time.Minute

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// product returns the binary under test.
func product(t *testing.T) string {
	t.Helper()
	if commit := os.Getenv("BIJOU_TEST_BINARY"); commit != "" {
		return versions.At(t, commit)
	}
	return versions.Current(t)
}

// slowly makes a hook run for a time that a file sets: it contains a minimum and a maximum in tenths of
// seconds. If a file "stubborn" is beside it, the hook ignores SIGTERM. Otherwise the hook's exit code shows
// that it got SIGTERM.
const slowly = `
if [ -e %[1]s/stubborn ]; then trap '' TERM; else trap 'exit 143' TERM; fi
read -r least most < %[1]s/tenths
for ((left = least + RANDOM %% (most - least + 1); left > 0; left -= 5)); do
    note "{\"event\":\"lives\",\"hook\":\"$hook\",\"pid\":$$,\"left\":$left}"
    sleep "0.$((left < 5 ? left : 5))"
done
`

// makeCharm creates a charm whose units record their hooks in the file record. The files in the directory
// orders control the hooks.
func makeCharm(t *testing.T, folder, orders, record string) {
	t.Helper()
	check(t, judge.Charm(folder, filepath.Join("..", "..", "charms", "recorder"), os.TempDir()))
	run, err := os.OpenFile(filepath.Join(folder, "control", "run-config-changed"), os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	defer run.Close()
	_, err = fmt.Fprintf(run, slowly, orders)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(folder, "control", "log"), []byte(record), 0o644))
}

// writeTenths sets the duration of the hooks that read their orders in that directory. It replaces the file
// in one step, since a hook that reads an empty file fails.
func writeTenths(t *testing.T, dir string, least, most int) {
	t.Helper()
	check(t, os.MkdirAll(dir, 0o755))
	fresh := filepath.Join(dir, "tenths.new")
	check(t, os.WriteFile(fresh, fmt.Appendf(nil, "%d %d\n", least, most), 0o644))
	check(t, os.Rename(fresh, filepath.Join(dir, "tenths")))
}

// inFlight returns the last run in the record that will still run for a long time. ok is false if there is no
// such run.
func inFlight(events []judge.Event) (s judge.Span, ok bool) {
	const long = 200 // tenths of a second
	if n := len(events); n == 0 || events[n-1].Event != judge.Lives || events[n-1].Left < long {
		return s, false
	}
	spans := judge.Spans(events)
	return spans[len(spans)-1], true
}

// endedAfter counts the runs that have ended, except for the first n.
func endedAfter(first int, events []judge.Event) (n int) {
	for _, s := range judge.Spans(events)[first:] {
		if s.Over {
			n++
		}
	}
	return n
}

// awaitHooks waits until n more runs have ended, in addition to the runs that have begun already.
func awaitHooks(n int, events func() []judge.Event, eventually func(what string, not func() string)) {
	had := len(judge.Spans(events()))
	eventually("more hooks have ended", func() string {
		return await.Unless(endedAfter(had, events()) >= n, "there are hooks to come")
	})
}

// awaitLong waits for a running hook that will still run for a long time, and returns it.
func awaitLong(events func() []judge.Event, eventually func(what string, not func() string)) (hook judge.Span) {
	eventually("a hook runs that takes long", func() string {
		var ok bool
		hook, ok = inFlight(events())
		return await.Unless(ok, "none does")
	})
	return hook
}

// checkRuns checks that no two runs overlapped, and that no run failed or was killed.
func checkRuns(t *testing.T, name string, events []judge.Event) {
	t.Helper()
	overlaps, spans, bad := judge.Overlaps(events), judge.Spans(events), 0
	var most time.Duration
	for _, o := range overlaps {
		most = max(most, o.Lasts)
	}
	for _, s := range spans {
		if !s.Over || s.Exit != 0 {
			bad++
			t.Errorf("%s: %v was killed or has failed: ended %v, exit %d", name, s, s.Over, s.Exit)
		}
	}
	fmt.Printf("copies: %s: %d hooks, %d overlaps (longest %v), %d killed\n", name, len(spans), len(overlaps), most, bad)
	for _, o := range overlaps {
		t.Errorf("%s: %v", name, o)
	}
}

// checkOutlived checks that a hook ran through the whole outage of the store to its end, and did not
// run again.
func checkOutlived(t *testing.T, hook judge.Span, events []judge.Event) {
	t.Helper()
	for _, s := range judge.Spans(events) {
		if s.Client == hook.Client && (s.At != hook.At || s.Lasts < outage || !s.Over || s.Exit != 0) {
			t.Errorf("%v, which was in flight when the store went away, lasted %v: ended %v, exit %d", s, s.Lasts, s.Over, s.Exit)
		}
	}
}

// checkOrder checks the unit's whole record against the promised order.
func checkOrder(t *testing.T, events []judge.Event) {
	t.Helper()
	for _, wrong := range judge.Violations(judge.Merge(events)) {
		t.Error(wrong)
	}
}
