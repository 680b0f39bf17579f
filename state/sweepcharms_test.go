package state_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

// revisions returns mysql's revisions in the environment, and whether their archives exist.
func revisions(t *testing.T, st *state.State) string {
	var all []string
	charms := statetest.Read(t, st, (*state.View).Charms)
	for _, c := range charms {
		if _, err := st.OpenBlob(t.Context(), c.SHA256); err != nil {
			t.Errorf("the archive of %s: %v", c.URL, err)
		}
		all = append(all, fmt.Sprint(c.URL.Revision))
	}
	return strings.Join(all, " ")
}

func revision10(n int) statetest.Files {
	files := statetest.MySQL()
	files["revision"] = fmt.Sprint(10 + n)
	return files
}

func TestSweepCharmsKeepsWhatIsUsed(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		charms := []state.Charm{statetest.AddCharm(t, st, revision10(0))}
		statetest.AddServiceOf(t, st, charms[0], "mysql", 2)
		upgrade := func(to state.Charm) {
			statetest.Update(t, st, func(tx *state.Tx) error {
				return tx.UpgradeService("mysql", state.UpgradeSpec{Charm: to.URL, Force: true})
			})
		}
		for n := 1; n <= 5; n++ {
			charms = append(charms, statetest.AddCharm(t, st, revision10(n)))
			upgrade(charms[n])
		}
		statetest.Update(t, st, func(tx *state.Tx) error { // mysql/0 runs an old revision, and mysql/1 another one
			err := tx.ChangeWorkflow("mysql/1", func(now *state.Workflow) {
				*now = state.Workflow{Charm: charms[1].URL.String(), Deploying: charms[2].URL.String()}
			})
			if err == nil {
				err = tx.SetUnitCharm("mysql/0", charms[0].URL.String())
			}
			return err
		})
		sweep := func(now time.Time) string {
			if err := sweep.Charms(t.Context(), st, now); err != nil {
				t.Fatal(err)
			}
			return revisions(t, st)
		}
		if diff := cmp.Diff("10 11 12 13 14 15", sweep(time.Now())); diff != "" {
			t.Error("what was stored just now: ", diff)
		}
		soon := time.Now().Add(2 * time.Minute)
		if diff := cmp.Diff("10 11 12 14 15", sweep(soon)); diff != "" {
			t.Error(diff)
		}
		if _, err := st.OpenBlob(t.Context(), charms[3].SHA256); err == nil {
			t.Error("the archive of a charm that was swept is there")
		}
		statetest.Update(t, st, func(tx *state.Tx) error {
			err := tx.ChangeWorkflow("mysql/1", func(now *state.Workflow) { *now = state.Workflow{Charm: charms[5].URL.String()} })
			if err == nil {
				err = tx.SetUnitCharm("mysql/0", charms[5].URL.String())
			}
			return err
		})
		upgrade(charms[5]) // a second upgrade, for units that were in error: the previous revision is still 14
		if diff := cmp.Diff("14 15", sweep(soon)); diff != "" {
			t.Error("after the units have gone over: ", diff)
		}
		upgrade(charms[4])
		if diff := cmp.Diff("14 15", sweep(soon)); diff != "" {
			t.Error("after going back: ", diff)
		}
		statetest.AddCharm(t, st, revision10(3)) // a swept revision can be added again
		if diff := cmp.Diff("13 14 15", sweep(time.Now())); diff != "" {
			t.Error(diff)
		}
	})
}

// TestSweepCharmsLooksAtAllServices checks that a charm that one service no longer runs is kept while another
// service runs it.
func TestSweepCharmsLooksAtAllServices(t *testing.T) {
	st := statetest.New(t)
	first := statetest.AddCharm(t, st, revision10(0))
	statetest.AddServiceOf(t, st, first, "one", 0)
	statetest.AddServiceOf(t, st, first, "two", 0)
	for n := 1; n <= 3; n++ {
		c := statetest.AddCharm(t, st, revision10(n))
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.UpgradeService("one", state.UpgradeSpec{Charm: c.URL}) })
	}
	if err := sweep.Charms(t.Context(), st, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("10 12 13", revisions(t, st)); diff != "" {
		t.Error(diff)
	}
}

// TestKeptCharms upgrades a service several times, from charms with which units were active and from other
// charms. Five charms must be kept. The rest must be removed together with the charms that no unit runs.
func TestKeptCharms(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		charms := []state.Charm{statetest.AddCharm(t, st, revision10(0))}
		statetest.AddServiceOf(t, st, charms[0], "mysql", 1)
		run := func(c state.Charm, status string) {
			statetest.Update(t, st, func(tx *state.Tx) error {
				if err := tx.SetUnitCharm("mysql/0", c.URL.String()); err != nil {
					return err
				}
				err := tx.ChangeWorkflow("mysql/0", func(now *state.Workflow) {
					*now = state.Workflow{Charm: c.URL.String(), State: "started"}
				})
				if err != nil {
					return err
				}
				return tx.SetUnitStatus("mysql/0", state.WorkloadStatus{Status: status})
			})
		}
		kept := func() string {
			var all []string
			for _, k := range statetest.Read(t, st, func(v *state.View) ([]state.KeptCharm, error) { return v.KeptCharms("mysql") }) {
				all = append(all, k.Charm[strings.LastIndex(k.Charm, "-")+1:])
			}
			return strings.Join(all, " ")
		}
		run(charms[0], "active")
		for n := 1; n <= 8; n++ {
			charms = append(charms, statetest.AddCharm(t, st, revision10(n)))
			statetest.Update(t, st, func(tx *state.Tx) error {
				return tx.UpgradeService("mysql", state.UpgradeSpec{Charm: charms[n].URL, At: time.Now()})
			})
			run(charms[n], map[bool]string{true: "active", false: "blocked"}[n != 3])
		}
		if diff := cmp.Diff("17 16 15 14 12", kept()); diff != "" {
			t.Error(diff)
		}
		if err := sweep.Charms(t.Context(), st, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("12 14 15 16 17 18", revisions(t, st)); diff != "" {
			t.Error(diff)
		}

		// An older binary has removed one of the kept charms.
		statetest.Update(t, st, func(tx *state.Tx) error {
			tx.Keys().Remove("charms/" + charms[7].URL.String())
			return nil
		})
		if diff := cmp.Diff("16 15 14 12", kept()); diff != "" {
			t.Error(diff)
		}

		// The service switches back to a kept charm, which then no longer counts as a charm to go back to.
		statetest.Update(t, st, func(tx *state.Tx) error {
			return tx.UpgradeService("mysql", state.UpgradeSpec{Charm: charms[6].URL, At: time.Now()})
		})
		if diff := cmp.Diff("18 15 14 12", kept()); diff != "" {
			t.Error(diff)
		}
	})
}
