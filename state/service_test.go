package state_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bijou/state"
	"bijou/state/constraints"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

func TestServiceComesWithItsPeerRelation(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 1)
	got := statetest.Read(t, st, func(v *state.View) ([]state.Relation, error) { return v.ServiceRelations("mysql") })
	want := []state.Relation{{ID: 0, Interface: "mysql-ha", Scope: "global", Life: state.Alive,
		Endpoints: []state.Endpoint{{Service: "mysql", Name: "cluster", Role: "peers"}}}}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(state.Relation{}, "Since")); d != "" {
		t.Error(d)
	}
	err := st.Update(t.Context(), func(tx *state.Tx) error { return tx.DestroyRelation(0) })
	if !errors.Is(err, state.ErrInUse) {
		t.Errorf("a peer relation was destroyed: %v", err)
	}
}

func TestServiceIsRefused(t *testing.T) {
	st := statetest.New(t)
	c := statetest.AddCharm(t, st, statetest.Meta("db", "series: [jammy, noble]\n"))
	statetest.AddServiceOf(t, st, c, "taken", 0)
	for want, s := range map[string]state.Service{
		"already exists":            {Name: "taken", Charm: c.URL.String()},
		"invalid application name":  {Name: "Taken/1", Charm: c.URL.String()},
		"does not support series":   {Name: "b", Charm: c.URL.String(), Series: "precise"},
		"unknown option":            {Name: "b", Charm: c.URL.String()},
		`charm "local:jammy/db-77"`: {Name: "b", Charm: "local:jammy/db-77"},
	} {
		err := st.Update(t.Context(), func(tx *state.Tx) error { _, err := tx.AddService(s, map[string]any{"x": "y"}); return err })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v; want %q", s, err, want)
		}
	}
}

// TestArchitectureIsRefused checks that a service is refused if its charm does not support the architecture
// in the service's constraints. If these have none, the architecture in the environment's constraints counts.
func TestArchitectureIsRefused(t *testing.T) {
	st := statetest.New(t)
	host, other := constraints.HostArch(), "riscv64"
	if host == other {
		other = "s390x"
	}
	c := statetest.AddCharm(t, st, statetest.Meta("db", fmt.Sprintf("bases: [{name: ubuntu, channel: '22.04', architectures: [%s]}]\n", host)))
	for i, tt := range []struct {
		asked, everywhere string
		force, want       bool
	}{
		{want: true}, {asked: host, want: true}, {asked: other}, {everywhere: other}, {asked: host, everywhere: other, want: true}, {asked: other, force: true, want: true},
	} {
		var all, own constraints.Value
		if tt.everywhere != "" {
			all.Arch = &tt.everywhere
		}
		if tt.asked != "" {
			own.Arch = &tt.asked
		}
		err := st.Update(t.Context(), func(tx *state.Tx) error {
			if err := tx.SetConstraints(all); err != nil {
				return err
			}
			_, err := tx.AddService(state.Service{Name: fmt.Sprint("db-", i), Charm: c.URL.String(), Constraints: own, ForceSeries: tt.force}, nil)
			return err
		})
		if isSeries := errors.As(err, new(*state.SeriesError)); (err == nil) != tt.want || err != nil && !isSeries {
			t.Errorf("%+v: got %v", tt, err)
		}
	}
}

func TestDestroyServiceWithoutAgents(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.Pair(t, st)
		for _, name := range []string{"wordpress", "mysql"} {
			units := statetest.Read(t, st, func(v *state.View) ([]state.Unit, error) { return v.Units(name) })
			if err := st.DestroyService(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			for _, u := range units { // they are on machine 0, which is provisioned, so an agent removes them
				if err := state.RemoveUnit(t.Context(), st.Update, u.Name); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := remaining(t, st); len(got) != 0 {
			t.Errorf("left over: %q", got)
		}
		units := statetest.AddServiceOf(t, st, statetest.AddCharm(t, st, statetest.MySQL()), "mysql", 1)
		if units[0].Name != "mysql/1" {
			t.Errorf("the service counts from %q; want to count on with mysql/1", units[0].Name)
		}
		if r := statetest.Read(t, st, func(v *state.View) ([]state.Relation, error) { return v.Relations() }); r[0].ID != 2 {
			t.Errorf("relation-%d was used again", r[0].ID)
		}
	})
}

func TestDestroyServiceWaitsForMembers(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		r := statetest.Pair(t, st)
		statetest.Enter(t, st, r.ID, "mysql/0", nil)
		statetest.Enter(t, st, r.ID, "wordpress/0", nil)
		if err := st.DestroyService(t.Context(), "mysql"); err != nil {
			t.Fatal(err)
		}
		lives := func() string {
			return statetest.Read(t, st, func(v *state.View) (string, error) {
				s, _ := v.Service("mysql")
				u, _ := v.Unit("mysql/0")
				r, _ := v.Relation(r.ID)
				return strings.Join([]string{string(s.Life), string(u.Life), string(r.Life)}, " "), nil
			})
		}
		if got := lives(); got != "dying dying dying" {
			t.Errorf("service, unit, relation: %s", got)
		}
		refused := st.Update(t.Context(), func(tx *state.Tx) error { _, err := tx.AddUnit("mysql", state.Placement{}); return err })
		if !errors.Is(refused, state.ErrDead) {
			t.Errorf("a unit was added to a dying service: %v", refused)
		}
		if err := state.RemoveUnit(t.Context(), st.Update, "mysql/0"); err != nil {
			t.Fatal(err)
		}
		if got := lives(); got != "dying  dying" {
			t.Errorf("with wordpress/0 in the relation: %q", got)
		}
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.LeaveRelation(r.ID, "wordpress/0") })
		if got := lives(); got != "  " {
			t.Errorf("after the last has left: %q", got)
		}
	})
}

// TestDestroyServiceOfAThousandUnits checks that a service is removed in batches if the agents of its many
// units have never started.
func TestDestroyServiceOfAThousandUnits(t *testing.T) {
	env := statetest.Environment()
	env.Provider = "nspawn"
	st := statetest.NewOf(t, env)
	statetest.AddService(t, st, statetest.MySQL(), 1000)
	if err := st.DestroyService(t.Context(), "mysql"); err != nil {
		t.Fatal(err)
	}
	if got := remaining(t, st); len(got) != 0 {
		t.Errorf("left over: %q", got[:min(5, len(got))])
	}
}

func TestSweepGoesOnWithADestruction(t *testing.T) {
	env := statetest.Environment()
	env.Provider = "nspawn"
	st := statetest.NewOf(t, env)
	statetest.AddService(t, st, statetest.MySQL(), 30)
	interrupted := st.DestroyService(cancelAfter(t, 40), "mysql")
	if left := len(remaining(t, st)); interrupted == nil || left >= 32 || left < 2 {
		t.Fatalf("it was not interrupted half-way: %v, %d left", interrupted, left)
	}
	if err := sweep.Run(t.Context(), st, later()); err != nil {
		t.Fatal(err)
	}
	if got := remaining(t, st); len(got) != 0 {
		t.Errorf("left over: %q", got[:min(5, len(got))])
	}
}

func TestNamesThatArePrefixesOfOthersDoNotLeak(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		c := statetest.AddCharm(t, st, statetest.MySQL())
		statetest.AddServiceOf(t, st, c, "mysql", 11)
		statetest.AddServiceOf(t, st, c, "mysql2", 2)
		err := st.Update(t.Context(), func(tx *state.Tx) error { return tx.DestroyUnit("mysql/1") })
		if err != nil {
			t.Fatal(err)
		}
		if err := state.RemoveUnit(t.Context(), st.Update, "mysql/1"); err != nil {
			t.Fatal(err)
		}
		if err := st.DestroyService(t.Context(), "mysql2"); err != nil {
			t.Fatal(err)
		}
		units := statetest.Read(t, st, func(v *state.View) ([]state.Unit, error) { return v.Units("mysql") })
		want := []string{"mysql/0", "mysql/2", "mysql/3", "mysql/4", "mysql/5", "mysql/6", "mysql/7", "mysql/8", "mysql/9", "mysql/10"}
		if d := cmp.Diff(want, unitNames(units)); d != "" {
			t.Error(d)
		}
		for _, u := range units {
			if u.Life != state.Alive {
				t.Errorf("%s is %s", u.Name, u.Life)
			}
		}
	})
}

// remaining lists every service, unit and relation.
func remaining(t *testing.T, st *state.State) (names []string) {
	t.Helper()
	statetest.View(t, st, func(v *state.View) error {
		services, err := v.Services()
		if err != nil {
			return err
		}
		for _, s := range services {
			names = append(names, s.Name)
		}
		units, err := v.Units("")
		if err != nil {
			return err
		}
		names = append(names, unitNames(units)...)
		relations, err := v.Relations()
		for _, r := range relations {
			names = append(names, r.String())
		}
		return err
	})
	return names
}
