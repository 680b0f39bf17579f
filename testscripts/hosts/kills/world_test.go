package kills

import (
	"path/filepath"
	"testing"
	"time"

	"bijou/state"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/localenv"
)

// world is one BIJOU_HOME with the applets of this test binary, and one environment in it, in a SQLite
// file.
type world struct {
	*localenv.Env
	t     *testing.T
	gone  string // the records of units that were removed
	charm string

	kills int
	wrong []string // what was found so far apart from the records
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Env: localenv.New(t, t.TempDir(), "BIJOU_STATE="), t: t, gone: t.TempDir()}
	w.charm = w.newCharm("recorder")
	t.Cleanup(func() { w.Destroy(w.Log) })
	w.Juju("bootstrap", "--config", "update-status-interval=0")
	return w
}

// newCharm makes a charm whose records can be judged.
func (w *world) newCharm(name string) string {
	w.t.Helper()
	folder := filepath.Join(w.t.TempDir(), name)
	check(w.t, judge.Charm(folder, filepath.Join("..", "..", "charms", "recorder"), w.gone))
	return folder
}

func (w *world) open() *state.State {
	w.t.Helper()
	s, err := state.Open(w.t.Context(), "sqlite:"+w.StateFile())
	check(w.t, err)
	return s
}

// view reads the state.
func (w *world) view(f func(v *state.View) error) {
	w.t.Helper()
	s := w.open()
	defer s.Close()
	check(w.t, s.View(w.t.Context(), f))
}

// units returns all units, or those of a service.
func (w *world) units(service string) (all []state.Unit) {
	w.t.Helper()
	w.view(func(v *state.View) (err error) {
		all, err = v.Units(service)
		return err
	})
	return all
}

// records returns the records of all present and past units, by unit.
func (w *world) records() map[string][]judge.Event {
	w.t.Helper()
	all, err := judge.ReadAll(filepath.Join(w.gone, "*"), w.Unit("*", "recorder.log"))
	check(w.t, err)
	return all
}

// eventually waits until not returns no reason to wait any longer. Its limit is far longer than needed.
func (w *world) eventually(what string, not func() string) {
	w.t.Helper()
	await.Until(w.t, await.Poll{Limit: 4 * time.Minute, Pause: 50 * time.Millisecond, Report: w.Status}, what, not)
}
