package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/access"
	"bijou/state/store"
	"bijou/testscripts/kit/accessed"
	"bijou/testscripts/kit/statetest"
)

// process is the part of an agent's process that elects leaders.
type process struct {
	*leaderElection
	p    *presence
	stop context.CancelFunc
	over chan struct{} // closed once the presence has ended
}

func newProcess(t *testing.T, st *state.State) process {
	log := slog.New(slog.DiscardHandler)
	claim, err := st.JoinClaim(t.Context(), "0", state.Claimant{}) // both processes run units of one machine
	if err != nil {
		t.Fatal(err)
	}
	p := newPresence(st, claim, log)
	ctx, cancel := context.WithCancel(context.Background())
	one := process{newLeaderElection(p, st, log), p, cancel, make(chan struct{})}
	go func() {
		defer close(one.over)
		p.run(ctx, nil)
	}()
	t.Cleanup(one.end)
	return one
}

// end waits for the campaigns and then stops, as a process does.
func (p process) end() {
	p.wait()
	p.stop()
	<-p.over
}

// runs registers a unit's agent as one that the process runs.
func (p process) runs(t *testing.T, unit string) {
	t.Helper()
	if err := p.p.announceAgent(t.Context(), state.UnitAgent(unit)); err != nil {
		t.Fatal(err)
	}
	p.nominate(t.Context(), unit, true)
}

func awaitLeader(t *testing.T, st *state.State, service, want string) {
	t.Helper()
	statetest.Eventually(t, st, func(v *state.View) (bool, error) {
		got, err := v.Leader(service)
		return got == want, err
	})
}

func TestLeadershipGoesFromProcessToProcess(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.MySQL(), 3)
		one, two := newProcess(t, st), newProcess(t, st)
		one.runs(t, "mysql/0")
		awaitLeader(t, st, "mysql", "mysql/0")
		one.runs(t, "mysql/2")
		two.runs(t, "mysql/1")
		one.withdraw("mysql/0")
		awaitLeader(t, st, "mysql", "mysql/2")
		one.nominate(t.Context(), "mysql/2", false)
		awaitLeader(t, st, "mysql", "mysql/1")
		one.nominate(t.Context(), "mysql/2", true)
		session, err := two.p.process.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := session.Close(t.Context()); err != nil { // as if the process had died
			t.Fatal(err)
		}
		statetest.Eventually(t, st, func(v *state.View) (bool, error) {
			got, err := v.Leader("mysql")
			return got != "", err
		})
	})
}

// TestLastUnitLeadsToItsEnd checks that a dying unit remains the leader until another unit can lead, because
// its last hooks may need a leader.
func TestLastUnitLeadsToItsEnd(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 1)
	one := newProcess(t, st)
	one.runs(t, "mysql/0")
	awaitLeader(t, st, "mysql", "mysql/0")
	one.nominate(t.Context(), "mysql/0", false)
	one.mu.Lock()
	c := one.services["mysql"]
	one.mu.Unlock()
	if one.hasOtherCandidates(t.Context(), "mysql/0", c) {
		t.Error("the unit that goes is its own heir")
	}
	if got := statetest.Read(t, st, func(v *state.View) (string, error) { return v.Leader("mysql") }); got != "mysql/0" {
		t.Errorf("%q leads", got)
	}
	one.withdraw("mysql/0")
	awaitLeader(t, st, "mysql", "")
}

// TestRemovedLeaderListsNoUnits checks that a process whose leading unit was removed does not list the units of
// the service. Its machine has no right to the list once it has no unit of the service.
func TestRemovedLeaderListsNoUnits(t *testing.T) {
	st := statetest.New(t)
	report := func(right access.Right, refusal error) {
		if refusal != nil {
			t.Error(refusal)
		}
	}
	asked := statetest.ShareWrapped(st, func(s store.Store) store.Store {
		return accessed.New(s, access.Agent("0"), report)
	})

	e := newLeaderElection(nil, asked, slog.New(slog.DiscardHandler))
	if e.hasOtherCandidates(t.Context(), "mysql/0", &candidates{}) {
		t.Error("there is no unit, but one could lead")
	}
}

// TestCampaignEndsWithItsUnit checks that the process stops campaigning for a unit that leaves, even if it
// still runs another unit of the service. A gateway would refuse such a campaign once the unit is removed.
func TestCampaignEndsWithItsUnit(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 3)
	one, two := newProcess(t, st), newProcess(t, st)
	one.runs(t, "mysql/0")
	awaitLeader(t, st, "mysql", "mysql/0")
	if err := two.p.announceAgent(t.Context(), state.UnitAgent("mysql/1")); err != nil {
		t.Fatal(err)
	}
	c := &candidates{units: map[string]bool{"mysql/1": false, "mysql/2": true}, changed: make(chan struct{}, 1)}
	c.notify()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lead, err := two.campaign(ctx, "mysql", "mysql/1", c)
	if lead != nil || err != nil {
		t.Errorf("the campaign ended with %v, %v; want neither", lead, err)
	}
}

// TestManyUnitsAreOneCampaign checks that five hundred units of a service share one campaign, which
// writes the leader's key once.
func TestManyUnitsAreOneCampaign(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 1)
	one := newProcess(t, st)
	for n := range 500 {
		one.nominate(t.Context(), fmt.Sprintf("mysql/%d", n), true)
	}
	awaitLeader(t, st, "mysql", "mysql/0")
	one.mu.Lock()
	defer one.mu.Unlock()
	if len(one.services) != 1 {
		t.Errorf("%d campaigns", len(one.services))
	}
}

// leads returns the leader of app.
func (r *rig) leads() string {
	return statetest.Read(r.t, r.st, func(v *state.View) (string, error) { return v.Leader("app") })
}

func TestLeaderHooks(t *testing.T) {
	twice(t, func(r *rig) {
		names := append(hooks(), "leader-elected", "leader-settings-changed")
		statetest.AddService(r.t, r.st, r.recorder(statetest.Meta("app", ""), names, map[string]string{
			"leader-elected":          `leader-set who="$JUJU_UNIT_NAME"`,
			"leader-settings-changed": `echo "$JUJU_UNIT_NAME heard of $(leader-get who), $(is-leader)" >> ` + r.notes,
		}), 2)
		r.start()
		r.eventually("somebody leads", func() bool { return r.leads() != "" })
		first := r.leads()
		other := map[string]string{"app/0": "app/1", "app/1": "app/0"}[first]
		r.awaitNote(first, "leader-elected")
		r.awaitNote(other, "heard of "+first+", False")
		r.settle()
		if got := r.noted(first); slices.Index(got, "leader-elected") < slices.Index(got, "install") {
			r.t.Errorf("%s: %q", first, got)
		}
		r.update(func(tx *state.Tx) error { return tx.DestroyUnit(first) })
		r.awaitNote(other, "leader-elected")
		r.eventually("the other has said so", func() bool {
			s := statetest.Read(r.t, r.st, func(v *state.View) (state.Settings, error) { return v.LeaderSettings("app") })
			return s.Values["who"] == other
		})
	})
}

// TestDeposedLeadersHookRunsAgain checks that a hook whose unit lost the leadership runs again by itself. The
// charm did not fail, so no operator needs to resolve the hook.
func TestDeposedLeadersHookRunsAgain(t *testing.T) {
	once(t, func(r *rig) {
		gate, begun := filepath.Join(t.TempDir(), "gate"), filepath.Join(t.TempDir(), "begun")
		wait := fmt.Sprintf(`[ "$(is-leader)$(config-get x)" = True1 ] || exit 0
leader-set a=1 && state-set b=2 || exit 1
touch %s; until [ -e %s ]; do sleep 0.05; done`, begun, gate)
		r.manual()
		files := r.recorder(statetest.Meta("app", ""), hooks(), map[string]string{"config-changed": wait})
		files["config.yaml"] = "options:\n  x: {type: int, default: 0}\n"
		statetest.AddService(r.t, r.st, files, 2)
		two := "2" // the hook of the other unit runs at the same time as the leader's
		r.update(func(tx *state.Tx) error { return tx.SetEnvironment(map[string]*string{state.HookConcurrency: &two}) })
		r.start()
		r.awaitState("app/0", "started")
		r.awaitState("app/1", "started")
		r.eventually("somebody leads", func() bool { return r.leads() != "" })
		first := r.leads()
		other := map[string]string{"app/0": "app/1", "app/1": "app/0"}[first]
		r.update(func(tx *state.Tx) error {
			_, err := tx.SetConfig("app", map[string]any{"x": "1"})
			return err
		})
		r.eventually("the leader's hook has begun", func() bool { _, err := os.Stat(begun); return err == nil })
		// The other unit reads the leader before the leadership changes, so that its hook does not write.
		r.eventually("the other's hook has ended", func() bool { return r.settled(other) })
		r.update(func(tx *state.Tx) error { return tx.DestroyUnit(first) })
		r.eventually("the other leads", func() bool { return r.leads() == other })
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			r.t.Fatal(err)
		}
		r.eventually("the hook runs again", func() bool {
			return strings.Contains(r.logs(), "its unit no longer leads the application")
		})
		r.eventually("the unit has left", func() bool {
			err := r.st.View(t.Context(), func(v *state.View) error { _, err := v.Unit(first); return err })
			return errors.Is(err, state.ErrNotFound)
		})
		s := statetest.Read(r.t, r.st, func(v *state.View) (state.Settings, error) { return v.LeaderSettings("app") })
		if len(s.Values) != 0 {
			r.t.Errorf("leader settings %v", s.Values)
		}
	})
}

// TestServicesOwnSettingsAreHeardOf checks that the units at the other end of a relation run a changed hook
// when a leader writes the settings of its service.
func TestServicesOwnSettingsAreHeardOf(t *testing.T) {
	once(t, func(r *rig) {
		mysql := statetest.Meta("mysql", "provides:\n  server: mysql\n")
		app := statetest.Meta("app", "requires:\n  db: mysql\n")
		app["config.yaml"] = "options:\n  x: {type: int, default: 0}\n"
		statetest.AddService(r.t, r.st, r.recorder(mysql, hooks("server"), map[string]string{
			"server-relation-changed": `echo "$JUJU_UNIT_NAME got $(relation-get --app x app)" >> ` + r.notes,
		}), 1)
		statetest.AddService(r.t, r.st, r.recorder(app, hooks("db"), map[string]string{
			"config-changed": `x=$(config-get x); [ "$x" = 0 ] || relation-set -r db --app x="$x"`,
		}), 1)
		statetest.Relate(r.t, r.st, "app", "mysql")
		r.start()
		r.awaitNote("mysql/0", "got ")
		r.eventually("app/0 leads", func() bool { return r.leads() == "app/0" })
		r.settle()
		r.update(func(tx *state.Tx) error {
			_, err := tx.SetConfig("app", map[string]any{"x": "7"})
			return err
		})
		r.awaitNote("mysql/0", "got 7")
	})
}
