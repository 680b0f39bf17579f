package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

func TestSubordinatesComeAndGoWithTheirPrincipal(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		for name, units := range map[string]int{"wordpress": 2, "logger": 0, "both": 1} {
			statetest.AddService(t, st, endpointCharms()[name], units)
		}
		r := statetest.Relate(t, st, "logger", "wordpress")
		for _, principal := range []string{"wordpress/1", "wordpress/0", "wordpress/0"} {
			statetest.Update(t, st, func(tx *state.Tx) error { return tx.EnterRelation(r.ID, principal, nil) })
			statetest.Update(t, st, func(tx *state.Tx) error { return tx.AddSubordinate(r.ID, principal) })
		}

		u := statetest.Read(t, st, func(v *state.View) (state.Unit, error) { return v.Unit("logger/1") })
		want := state.Unit{Name: "logger/1", Service: "logger", Number: 1, Machine: "0", Series: u.Series, Life: state.Alive, Principal: "wordpress/0"}
		if u.Status.Since.IsZero() {
			t.Error("nobody knows since when it is there")
		}
		want.Status.Since = u.Status.Since
		if d := cmp.Diff(want, u); d != "" {
			t.Errorf("the second unit's subordinate (-want +got):\n%s", d)
		}
		names := statetest.Read(t, st, func(v *state.View) (n []string, err error) {
			units, err := v.Units("logger")
			for _, u := range units {
				n = append(n, u.Name)
			}
			return n, err
		})
		if d := cmp.Diff([]string{"logger/0", "logger/1"}, names); d != "" {
			t.Errorf("each principal has one (-want +got):\n%s", d)
		}

		// Members of subordinates are distinguished by their principals.
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.EnterRelation(r.ID, "logger/0", nil) })
		m := statetest.Read(t, st, func(v *state.View) (state.Member, error) {
			m, _, err := v.Member(r.ID, "logger/0")
			return m, err
		})
		if m.Principal != "wordpress/1" {
			t.Errorf("logger/0 is in with principal %q", m.Principal)
		}

		// A subordinate without a relation is dying. When it is removed, it is also removed from its
		// principal's record.
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyIfUnrelated("logger/0") })
		if life := lifeOf(t, st, "logger/0"); life != state.Alive {
			t.Errorf("a subordinate that is held is %s", life)
		}
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyRelation(r.ID) })
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyIfUnrelated("logger/0") })
		if life := lifeOf(t, st, "logger/0"); life != state.Dying {
			t.Errorf("a subordinate that nothing holds is %s", life)
		}
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.RemoveUnit("logger/0") })
		p := statetest.Read(t, st, func(v *state.View) (state.Unit, error) { return v.Unit("wordpress/1") })
		if len(p.Subordinates) != 0 {
			t.Errorf("its principal still has %q", p.Subordinates)
		}

		// The removal of a principal removes its subordinates.
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.PutWorkflow("wordpress/0", state.Workflow{State: "started"}) })
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.PutWorkflow("logger/1", state.Workflow{State: "started"}) })
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyUnit("wordpress/0") })
		if life := lifeOf(t, st, "logger/1"); life != state.Dying {
			t.Errorf("the subordinate of a unit that goes is %s", life)
		}
	})
}

func lifeOf(t *testing.T, st *state.State, unit string) state.Life {
	t.Helper()
	return statetest.Read(t, st, func(v *state.View) (state.Life, error) {
		u, err := v.Unit(unit)
		return u.Life, err
	})
}
