package state_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/keys"
	"bijou/testscripts/kit/statetest"
)

func TestPlacement(t *testing.T) {
	for _, test := range []struct {
		provider, to string
		want         string // the unit's machine, or a part of the error
		machines     int
	}{
		{"local", "", "0", 1},
		{"local", "new", "1", 2},
		{"local", "0", "0", 1},
		{"local", "7", `machine "7" not found`, 1},
		{"local", "0/units/mysql/0", "not found", 1},
		{"nspawn", "", "1", 2},
		{"nspawn", "new", "1", 2},
		{"nspawn", "0", "0", 1},
	} {
		env := statetest.Environment()
		env.Provider = test.provider
		st := statetest.NewOf(t, env)
		statetest.AddService(t, st, statetest.MySQL(), 0)
		var got string
		err := st.Update(t.Context(), func(tx *state.Tx) error {
			u, err := tx.AddUnit("mysql", state.Placement{Machine: test.to})
			got = u.Machine
			return err
		})
		if err != nil {
			got = err.Error()
		}
		machines := statetest.Read(t, st, (*state.View).Machines)
		if !strings.Contains(got, test.want) || len(machines) != test.machines {
			t.Errorf("%s --to %q: on %q of %d machines; want %q of %d", test.provider, test.to, got, len(machines), test.want, test.machines)
		}
	}
}

func TestUnitOfAnotherSeries(t *testing.T) {
	env := statetest.Environment()
	env.Provider, env.DefaultSeries = "nspawn", "noble"
	st := statetest.NewOf(t, env)
	statetest.AddService(t, st, statetest.MySQL(), 0) // jammy
	err := st.Update(t.Context(), func(tx *state.Tx) error { _, err := tx.AddUnit("mysql", state.Placement{Machine: "0"}); return err })
	if err == nil || !strings.Contains(err.Error(), `machine 0 has series "noble", but the application has "jammy"`) {
		t.Errorf("got %v", err)
	}
}

func TestSubordinateHasNoUnitsOfItsOwn(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, endpointCharms()["logger"], 0)
	err := st.Update(t.Context(), func(tx *state.Tx) error { _, err := tx.AddUnit("logger", state.Placement{}); return err })
	if err == nil || !strings.Contains(err.Error(), "subordinate") {
		t.Errorf("got %v", err)
	}
}

// TestDestroyUnit checks that a unit that no agent knows is removed immediately, and that the removal of any
// other unit waits for its agent.
func TestDestroyUnit(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(t *testing.T, st *state.State)
		gone   bool
	}{
		{"untouched, not provisioned", func(*testing.T, *state.State) {}, true},
		{"provisioned", func(t *testing.T, st *state.State) {
			statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetInstance("1", "i-1", state.Addresses{}) })
		}, false},
		{"announced", func(t *testing.T, st *state.State) { statetest.Session(t, st, "unit-mysql-0") }, false},
		{"touched", func(t *testing.T, st *state.State) {
			statetest.Update(t, st, func(tx *state.Tx) error { return tx.PutWorkflow("mysql/0", state.Workflow{State: "installed"}) })
		}, false},
	} {
		env := statetest.Environment()
		env.Provider = "nspawn"
		st := statetest.NewOf(t, env)
		statetest.AddService(t, st, statetest.MySQL(), 1)
		test.before(t, st)
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyUnit("mysql/0") })
		statetest.View(t, st, func(v *state.View) error {
			u, err := v.Unit("mysql/0")
			if gone := errors.Is(err, state.ErrNotFound); gone != test.gone || !gone && u.Life != state.Dying {
				t.Errorf("%s: gone is %v, life %q", test.name, gone, u.Life)
			}
			return nil
		})
	}
}

func TestRemoveUnitLeavesNothing(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		r := statetest.Pair(t, st)
		statetest.Enter(t, st, r.ID, "mysql/0", map[string]string{"a": "1"})
		statetest.Session(t, st, "unit-mysql-0")
		agent := state.UpdaterFor(statetest.Claim(t, st, "0", "/m"), "unit-mysql-0")
		statetest.Update(t, st, func(tx *state.Tx) error {
			return errors.Join(
				tx.PutWorkflow("mysql/0", state.Workflow{State: "stopped"}),
				tx.PutOp("mysql/0", state.Op{ID: "x"}),
				tx.PutRelationState("mysql/0", r.ID, state.RelationState{State: state.RelationUp}),
				tx.SetPorts("mysql/0", []state.Port{{From: 80, To: 80, Protocol: "tcp"}}),
			)
		})
		for i := range 5 { // these are more records than one transaction can remove
			statetest.Update(t, st, func(tx *state.Tx) error {
				for j := range 50 {
					if err := tx.PutMember("mysql/0", r.ID, fmt.Sprintf("wordpress/%d", 50*i+j), state.MemberState{State: "joined"}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := state.RemoveUnit(t.Context(), agent, "mysql/0"); !errors.Is(err, state.ErrInUse) {
			t.Errorf("an alive unit: %v", err)
		}
		statetest.Update(t, st, func(tx *state.Tx) error { return errors.Join(tx.DestroyUnit("mysql/0"), tx.SetUnitDead("mysql/0")) })
		if err := state.RemoveUnit(t.Context(), agent, "mysql/0"); err != nil {
			t.Fatal(err)
		}
		if err := state.RemoveUnit(t.Context(), st.Update, "mysql/0"); err != nil {
			t.Errorf("removed again: %v", err)
		}
		statetest.View(t, st, func(v *state.View) error {
			u, err := v.Uniter("mysql/0")
			if d := cmp.Diff(state.Uniter{Relations: map[int]state.RelationState{}, Members: map[int]map[string]state.MemberState{}}, u); d != "" {
				t.Error(d)
			}
			on, merr := v.MachineUnits("0")
			if d := cmp.Diff([]string{"wordpress/0"}, on); d != "" {
				t.Error(d)
			}
			ports, perr := v.Ports("mysql/0")
			members, eerr := v.Members(r.ID)
			if len(ports)+len(members) > 0 {
				t.Errorf("ports %v, members %v", ports, members)
			}
			if _, err := v.Settings(r.ID, "mysql/0"); err != nil {
				t.Errorf("its settings went with it: %v", err)
			}
			return errors.Join(err, merr, perr, eerr)
		})
	})
}

func TestMachines(t *testing.T) {
	env := statetest.Environment()
	env.Provider = "nspawn"
	st := statetest.NewOf(t, env)
	statetest.AddService(t, st, statetest.MySQL(), 2) // machines 1, 2
	destroy := func(id string, force bool) error { return st.DestroyMachine(t.Context(), id, force) }
	for id, force := range map[string]bool{"0": true, "1": false} {
		if err := destroy(id, force); !errors.Is(err, state.ErrInUse) {
			t.Errorf("machine %s, force %v: %v", id, force, err)
		}
	}
	if err := destroy("1", true); err != nil {
		t.Fatal(err)
	}
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetInstance("2", "i-2", state.Addresses{Private: "10.0.0.2"}) })
	if err := destroy("2", true); err != nil {
		t.Fatal(err)
	}
	statetest.View(t, st, func(v *state.View) error {
		machines, err := v.Machines()
		if len(machines) != 2 || machines[1].ID != "2" || machines[1].Life != state.Dead {
			t.Errorf("machines: %+v", machines)
		}
		units, uerr := v.Units("")
		if len(units) != 0 {
			t.Errorf("units: %v", unitNames(units))
		}
		return errors.Join(err, uerr)
	})
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.RemoveMachine("2") })
	statetest.Update(t, st, func(tx *state.Tx) error {
		m, err := tx.AddMachine(state.Machine{})
		if m.ID != "3" || m.Series != "jammy" {
			t.Errorf("got %+v", m)
		}
		if err != nil {
			return err
		}
		return tx.DestroyMachine("3") // the machine is not provisioned, so it is removed immediately
	})
}

func TestPortsAreSortedAndPrinted(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 1)
	statetest.Update(t, st, func(tx *state.Tx) error {
		return tx.SetPorts("mysql/0", []state.Port{
			{From: 443, To: 443, Protocol: "tcp"}, {From: 53, To: 60, Protocol: "udp"}, {Protocol: "icmp"},
			{From: 80, To: 80, Protocol: "tcp"}, {From: 80, To: 80, Protocol: "tcp"},
		})
	})
	var got []string
	for _, p := range statetest.Read(t, st, func(v *state.View) ([]state.Port, error) { return v.Ports("mysql/0") }) {
		got = append(got, p.String())
	}
	if d := cmp.Diff([]string{"icmp", "80/tcp", "443/tcp", "53-60/udp"}, got); d != "" {
		t.Error(d)
	}
}

// TestRemoveUnitSaysWhatFailed removes a unit of a damaged environment. A missing storage does not count as a
// failure of the removal, and must not hide an earlier failure.
func TestRemoveUnitSaysWhatFailed(t *testing.T) {
	st := statetest.New(t)
	u := statetest.AddService(t, st, statetest.MySQL(), 1)[0]
	u.Life = state.Dead
	u.Subordinates = []string{"logger/0"}
	statetest.Update(t, st, func(tx *state.Tx) error {
		if _, err := tx.Unit(u.Name); err != nil { // without this read, the write would drop unknown members
			return err
		}
		for key, record := range map[string]any{
			keys.Unit(u.Name):        u,
			keys.Unit("logger/0"):    "damaged",
			keys.UnitStorage(u.Name): []string{"data/9"},
		} {
			if err := tx.Keys().Put(key, record); err != nil {
				return err
			}
		}
		return nil
	})

	err := state.RemoveUnit(t.Context(), st.Update, u.Name)
	if err == nil || !strings.Contains(err.Error(), "logger/0") {
		t.Errorf("error %v, want one of logger/0", err)
	}
}
