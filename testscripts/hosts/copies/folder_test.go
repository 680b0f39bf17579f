package copies

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/multicall/home"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/localenv"
)

// folder is an environment in a file on this host, with one unit.
type folder struct {
	*localenv.Env
	t   *testing.T
	dir string
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	dir := t.TempDir()
	w := &folder{localenv.New(t, filepath.Join(dir, "home"), "BIJOU_STATE="), t, dir}
	w.Call = []string{product(t), "juju"}
	w.order(1, 2)
	makeCharm(t, filepath.Join(w.dir, "recorder"), w.dir, w.record())
	t.Cleanup(func() { w.Destroy(w.Log) })
	w.Juju("bootstrap", "--config", "update-status-interval=0")
	w.Juju("deploy", filepath.Join(w.dir, "recorder"), "app")
	w.awaitHooks(3) // install, config-changed, start
	return w
}

func (w *folder) record() string { return filepath.Join(w.dir, "record") }

// order sets how long hooks take from now on, in tenths of a second.
func (w *folder) order(least, most int) {
	w.t.Helper()
	check(w.t, os.WriteFile(filepath.Join(w.dir, "tenths"), fmt.Appendf(nil, "%d %d\n", least, most), 0o644))
}

func (w *folder) events() []judge.Event {
	w.t.Helper()
	events, err := judge.Read(w.record())
	check(w.t, err)
	return events
}

// awaitHooks waits until n more runs have ended, after those that have begun.
func (w *folder) awaitHooks(n int) {
	w.t.Helper()
	awaitHooks(n, w.events, w.eventually)
}

// awaitLong waits for a running hook that has long to go, and returns it.
func (w *folder) awaitLong() judge.Span {
	w.t.Helper()
	return awaitLong(w.events, w.eventually)
}

func (w *folder) eventually(what string, not func() string) {
	w.t.Helper()
	await.Until(w.t, await.Poll{Limit: limit, Pause: 20 * time.Millisecond, Report: w.Status}, what, not)
}

// missing returns what the record lacks compared with the state.
func (w *folder) missing() string {
	w.t.Helper()
	e, err := home.Load(w.Dir())
	check(w.t, err)
	lack, err := judge.MissingFrom(w.t.Context(), e.State, map[string][]judge.Event{"app/0": judge.Merge(w.events())})
	check(w.t, err)
	return strings.Join(lack, "; ")
}
