package kills

import (
	"path/filepath"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/keys"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/confined"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/localenv"
)

// These are the ways in which agents reach their state.
const (
	overSQLite  = "sqlite"  // they open its file themselves
	overGateway = "gateway" // they reach it through a gateway in a different process, which opens its file
)

// world is one BIJOU_HOME with the applets of this test binary, and one environment in it, in a SQLite
// file.
type world struct {
	*localenv.Env
	t       *testing.T
	over    string
	gateway *confined.Gateway // only with overGateway
	gone    string            // the records of units that were removed
	charm   string

	kills        int
	gatewayKills int
	wrong        []string // the faults that were found so far outside the records
}

func newWorld(t *testing.T, over string) *world {
	t.Helper()
	w := &world{Env: localenv.New(t, t.TempDir(), "BIJOU_STATE="), t: t, over: over, gone: t.TempDir()}
	w.charm = w.newCharm("recorder")
	if over == overGateway {
		w.gateway = confined.NewGateway(t, w.url(), w.Dir())
		w.Vars = append(w.Vars, w.gateway.Vars()...)
	}
	t.Cleanup(func() { w.Destroy(w.Log) })
	w.Juju("bootstrap", "--config", "update-status-interval=0")
	if over == overGateway {
		w.gateway.AwaitReady()
		w.eventually("the agents have leases of the gateway", func() string {
			return await.Unless(len(w.keys([]string{keys.GatewayLeases})) > 0, "none")
		})
	}
	return w
}

// url returns the URL of the state.
func (w *world) url() string { return "sqlite:" + w.StateFile() }

// newCharm creates a charm whose records package judge can check.
func (w *world) newCharm(name string) string {
	w.t.Helper()
	folder := filepath.Join(w.t.TempDir(), name)
	check(w.t, judge.Charm(folder, filepath.Join("..", "..", "charms", "recorder"), w.gone))
	return folder
}

func (w *world) open() *state.State {
	w.t.Helper()
	s, err := state.Open(w.t.Context(), w.url())
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

// eventually waits until the function not returns "". Until then, the function returns the reason to wait longer. The
// limit is far longer than the wait needs.
func (w *world) eventually(what string, not func() string) {
	w.t.Helper()
	await.Until(w.t, await.Poll{Limit: 4 * time.Minute, Pause: 50 * time.Millisecond, Report: w.Status}, what, not)
}
