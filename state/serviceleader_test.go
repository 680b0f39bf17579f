package state_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

func leaderOf(t *testing.T, st *state.State, service string) string {
	t.Helper()
	return statetest.Read(t, st, func(v *state.View) (string, error) { return v.Leader(service) })
}

func TestServiceLeader(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.MySQL(), 3)
		s := statetest.Session(t, st)
		if got := leaderOf(t, st, "mysql"); got != "" {
			t.Errorf("%q leads before anybody does", got)
		}
		lead, err := state.CampaignFor(t.Context(), s, "mysql", "mysql/1")
		if err != nil || leaderOf(t, st, "mysql") != "mysql/1" {
			t.Fatalf("%q leads, %v", leaderOf(t, st, "mysql"), err)
		}
		if err := state.SetLeaderUnit(t.Context(), lead, "mysql/2"); err != nil || leaderOf(t, st, "mysql") != "mysql/2" {
			t.Errorf("%q leads, %v", leaderOf(t, st, "mysql"), err)
		}
		status := statetest.Read(t, st, statusNow)
		for unit, want := range map[string]bool{"mysql/0": false, "mysql/1": false, "mysql/2": true} {
			if got := status.Services["mysql"].Units[unit].Leader; got != want {
				t.Errorf("status: %s leads: %v", unit, got)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := leaderOf(t, st, "mysql"); got != "" {
			t.Errorf("%q leads after its session", got)
		}
		if err := state.SetLeaderUnit(t.Context(), lead, "mysql/0"); !errors.Is(err, state.ErrSessionLost) {
			t.Errorf("elected after the session: %v", err)
		}
	})
}

// TestServiceLeadersAreTheirOwn checks that a service can have the same name as another role that has a
// leader.
func TestServiceLeadersAreTheirOwn(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.Meta("provisioner", ""), 1)
	s := statetest.Session(t, st)
	if _, err := state.Campaign(t.Context(), s, "provisioner"); err != nil {
		t.Fatal(err)
	}
	if _, err := state.CampaignFor(t.Context(), s, "provisioner", "provisioner/0"); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyLivingUnitsLead checks that a unit that has left its service does not come to lead it, neither by a campaign nor
// by the leader's choice.
func TestOnlyLivingUnitsLead(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.MySQL(), 2)
		statetest.Update(t, st, func(tx *state.Tx) error {
			return tx.PutWorkflow("mysql/0", state.Workflow{State: "installed"})
		})
		statetest.Update(t, st, func(tx *state.Tx) error {
			return errors.Join(tx.DestroyUnit("mysql/0"), tx.SetUnitDead("mysql/0"))
		})
		s := statetest.Session(t, st)

		for unit, want := range map[string]error{"mysql/0": state.ErrDead, "mysql/7": state.ErrNotFound} {
			if _, err := state.CampaignFor(t.Context(), s, "mysql", unit); !errors.Is(err, want) {
				t.Errorf("%s campaigned: got error %v, want %v", unit, err, want)
			}
		}

		lead, err := state.CampaignFor(t.Context(), s, "mysql", "mysql/1")
		if err != nil {
			t.Fatal(err)
		}
		if err := state.SetLeaderUnit(t.Context(), lead, "mysql/0"); !errors.Is(err, state.ErrDead) {
			t.Errorf("mysql/0 was chosen: got error %v, want %v", err, state.ErrDead)
		}
		if got := leaderOf(t, st, "mysql"); got != "mysql/1" {
			t.Errorf("%q leads, want mysql/1", got)
		}
	})
}

func TestLeaderSettings(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 2)
	one, gone := "1", (*string)(nil)
	set := func(unit string, changes map[string]*string) error {
		return st.Update(t.Context(), func(tx *state.Tx) error {
			_, err := tx.MergeLeaderSettings("mysql", unit, changes)
			return err
		})
	}
	if err := set("mysql/0", map[string]*string{"a": &one}); !errors.Is(err, state.ErrNotLeader) {
		t.Errorf("nobody leads: %v", err)
	}
	lead, err := state.CampaignFor(t.Context(), statetest.Session(t, st), "mysql", "mysql/0")
	if err != nil {
		t.Fatal(err)
	}
	for _, changes := range []map[string]*string{{"a": &one, "b": &one}, {"a": &one}, {"b": gone}} {
		if err := set("mysql/0", changes); err != nil {
			t.Fatal(err)
		}
	}
	if err := set("mysql/1", map[string]*string{"a": gone}); !errors.Is(err, state.ErrNotLeader) {
		t.Errorf("another unit: %v", err)
	}
	want := state.Settings{Values: map[string]string{"a": "1"}, Version: 2}
	got := statetest.Read(t, st, func(v *state.View) (state.Settings, error) { return v.LeaderSettings("mysql") })
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// The leader is deposed between the read and the commit, so the commit must fail.
	deposed := false
	err = st.Update(t.Context(), func(tx *state.Tx) error {
		if err := tx.CheckLeader("mysql", "mysql/0"); err != nil {
			return err
		}
		if !deposed {
			deposed = true
			if err := state.SetLeaderUnit(t.Context(), lead, "mysql/1"); err != nil {
				return err
			}
		}
		return tx.SetServiceStatus("mysql", state.WorkloadStatus{Status: "active"})
	})
	if !errors.Is(err, state.ErrNotLeader) {
		t.Errorf("deposed in mid-update: %v", err)
	}
}

func TestUnitState(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 1)
	large, empty := strings.Repeat("x", 1<<20), ""
	statetest.Update(t, st, func(tx *state.Tx) error {
		_, err := tx.MergeUnitState("mysql/0", map[string]*string{"large": &large, "empty": &empty})
		return err
	})
	if err := sweep.Run(t.Context(), st, time.Now().Add(48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	read := func() map[string]string {
		return statetest.Read(t, st, func(v *state.View) (map[string]string, error) {
			s, err := v.UnitState("mysql/0")
			return s.Values, err
		})
	}
	if d := cmp.Diff(map[string]string{"large": large, "empty": ""}, read()); d != "" {
		t.Error("after a sweep of blobs:", d[:min(200, len(d))])
	}
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyUnit("mysql/0") })
	if err := state.RemoveUnit(t.Context(), st.Update, "mysql/0"); err != nil {
		t.Fatal(err)
	}
	if got := read(); len(got) != 0 {
		t.Error("the notes outlive the unit")
	}
	err := st.Update(t.Context(), func(tx *state.Tx) error {
		_, err := tx.MergeUnitState("mysql/0", map[string]*string{"a": &large})
		return err
	})
	if !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a unit that is gone: %v", err)
	}
}

func TestWorkloadVersion(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 2)
	noon := time.Date(2012, 2, 29, 12, 0, 0, 0, time.UTC)
	for _, set := range []struct {
		unit, version string
		since         time.Time
	}{{"mysql/0", "5.0", noon}, {"mysql/1", "5.1", noon.Add(time.Hour)}, {"mysql/0", "5.0", noon.Add(2 * time.Hour)}} {
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetWorkloadVersion(set.unit, set.version, set.since) })
	}
	s := statetest.Read(t, st, statusNow).Services["mysql"]
	if s.Version != "5.1" || s.Units["mysql/0"].Version != "5.0" || s.Units["mysql/1"].Version != "5.1" {
		t.Errorf("service %q, units %q and %q", s.Version, s.Units["mysql/0"].Version, s.Units["mysql/1"].Version)
	}
}

func TestLongWorkloadVersion(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 1)
	noon := time.Date(2012, 2, 29, 12, 0, 0, 0, time.UTC)
	version := strings.Repeat("5.", 10_000)
	for _, since := range []time.Time{noon, noon.Add(time.Hour)} {
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetWorkloadVersion("mysql/0", version, since) })
	}

	unit, err := state.Read(t.Context(), st, func(v *state.View) (state.Unit, error) { return v.Unit("mysql/0") })
	if err != nil {
		t.Fatal(err)
	}
	if !unit.Workload.Since.Equal(noon) {
		t.Errorf("the workload has its version since %v, want %v", unit.Workload.Since, noon)
	}
}
