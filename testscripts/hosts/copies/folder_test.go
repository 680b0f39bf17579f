package copies

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/multicall/home"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/confined"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/localenv"
)

// folder is an environment in a file on this host, with one unit.
type folder struct {
	*localenv.Env
	t       *testing.T
	dir     string
	gateway *confined.Gateway // the gateway through which agents reach the state; if nil, they open its file themselves
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	w := prepareFolder(t)
	w.Call = []string{product(t), "juju"}
	w.bootstrap()
	return w
}

// newFolderByGateway is like newFolder, but with the applets of this test binary. Their agents reach the
// state through a gateway in a separate process.
func newFolderByGateway(t *testing.T) *folder {
	t.Helper()
	w := prepareFolder(t)
	w.gateway = confined.NewGateway(t, "sqlite:"+w.StateFile(), w.Dir())
	w.Vars = append(w.Vars, w.gateway.Vars()...)
	w.bootstrap()
	return w
}

func prepareFolder(t *testing.T) *folder {
	t.Helper()
	dir := t.TempDir()
	return &folder{Env: localenv.New(t, filepath.Join(dir, "home"), "BIJOU_STATE="), t: t, dir: dir}
}

func (w *folder) bootstrap() {
	w.t.Helper()
	w.order(1, 2)
	makeCharm(w.t, filepath.Join(w.dir, "recorder"), w.dir, w.record())
	w.t.Cleanup(func() { w.Destroy(w.Log) })
	w.Juju("bootstrap", "--config", "update-status-interval=0")
	if w.gateway != nil {
		w.gateway.AwaitReady()
	}
	w.Juju("deploy", filepath.Join(w.dir, "recorder"), "app")
	w.awaitHooks(3) // install, config-changed, start
}

func (w *folder) record() string { return filepath.Join(w.dir, "record") }

// order sets the duration of later hooks, in tenths of a second.
func (w *folder) order(least, most int) {
	w.t.Helper()
	writeTenths(w.t, w.dir, least, most)
}

func (w *folder) events() []judge.Event {
	w.t.Helper()
	events, err := judge.Read(w.record())
	check(w.t, err)
	return events
}

// awaitHooks waits until n more runs have ended, in addition to the runs that have begun already.
func (w *folder) awaitHooks(n int) {
	w.t.Helper()
	awaitHooks(n, w.events, w.eventually)
}

// awaitLong waits for a running hook that will still run for a long time, and returns it.
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
