package state_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// TestSpareMachines checks that the first unit that fits takes a machine that was added, and that no other
// unit takes it.
func TestSpareMachines(t *testing.T) {
	for _, test := range []struct {
		name  string
		spec  state.Machine
		spoil func(tx *state.Tx) error
		to    string
		want  string
	}{
		{"fits", state.Machine{}, nil, "", "1"},
		{"has more", state.Machine{Constraints: parsed(t, "mem=4G cores=9")}, nil, "", "1"},
		{"has less", state.Machine{Constraints: parsed(t, "mem=1G")}, nil, "", "2"},
		{"is not known to have it", state.Machine{Constraints: parsed(t, "mem=")}, nil, "", "2"},
		{"has another series", state.Machine{Series: "noble"}, nil, "", "2"},
		{"manages the environment", state.Machine{Jobs: []string{state.JobManage, state.JobUnits}}, nil, "", "2"},
		{"manages, and is asked for", state.Machine{Jobs: []string{state.JobManage, state.JobUnits}}, nil, "1", "1"},
		{"is in error", state.Machine{}, func(tx *state.Tx) error { return tx.SetMachineStatus("1", state.MachineError, "no") }, "", "2"},
		{"is dying", state.Machine{}, func(tx *state.Tx) error {
			return errors.Join(tx.SetInstance("1", "i-1", state.Addresses{}), tx.DestroyMachine("1"))
		}, "", "2"},
		{"is gone", state.Machine{}, func(tx *state.Tx) error { return tx.DestroyMachine("1") }, "", "2"},
		{"is not wanted", state.Machine{}, nil, "new", "2"},
		{"is asked for", state.Machine{Constraints: parsed(t, "mem=1G")}, nil, "1", "1"},
		{"is asked for by another before", state.Machine{}, func(tx *state.Tx) error {
			_, err := tx.AddUnit("mysql", state.Placement{Machine: "1"})
			return errors.Join(err, tx.DestroyUnit("mysql/0"))
		}, "", "1"}, // the unit has left before its agent installed anything
		{"is asked for by two before", state.Machine{}, func(tx *state.Tx) error {
			_, errA := tx.AddUnit("mysql", state.Placement{Machine: "1"})
			_, errB := tx.AddUnit("mysql", state.Placement{Machine: "1"})
			return errors.Join(errA, errB, tx.DestroyUnit("mysql/0"), tx.DestroyUnit("mysql/1"))
		}, "", "2"},
		{"was started anew for more", state.Machine{Constraints: parsed(t, "mem=1G")}, func(tx *state.Tx) error {
			more := parsed(t, "mem=8G")
			return errors.Join(tx.SetMachineStatus("1", state.MachineError, "no"), tx.ResolveMachine("1", &more))
		}, "", "1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := remote()
			env.Constraints = parsed(t, "mem=2G")
			st := statetest.NewOf(t, env)
			statetest.AddService(t, st, statetest.MySQL(), 0)
			statetest.Update(t, st, func(tx *state.Tx) error {
				_, err := tx.AddMachine(test.spec)
				return err
			})
			if test.spoil != nil {
				statetest.Update(t, st, test.spoil)
			}
			if got := placed(t, st, test.to); got != test.want {
				t.Errorf("the unit is on machine %s, want %s", got, test.want)
			}
			if got := placed(t, st, ""); got == "1" && test.to != "new" {
				t.Error("a second unit came to the machine")
			}
		})
	}
}

// TestMachineOfAUnitThatNeverWas checks the machine of a unit that leaves before its agent installed
// anything. If the machine has no instance, it is not started. Otherwise it becomes a spare machine, no
// matter why it was added.
func TestMachineOfAUnitThatNeverWas(t *testing.T) {
	dead := func(tx *state.Tx) error {
		return errors.Join(tx.DestroyUnit("mysql/0"), tx.SetUnitDead("mysql/0"), tx.RemoveUnit("mysql/0"))
	}
	for _, test := range []struct {
		name    string
		started bool
		leaves  func(tx *state.Tx) error
		machine bool   // whether the machine still exists
		next    string // the machine of the next unit
	}{
		{"before there is an instance", false, func(tx *state.Tx) error { return tx.DestroyUnit("mysql/0") }, false, "2"},
		{"before anything is installed", true, dead, true, "1"},
		{"after", true, func(tx *state.Tx) error {
			return errors.Join(tx.PutWorkflow("mysql/0", state.Workflow{State: "installed", Charm: "local:jammy/mysql-3"}), dead(tx))
		}, true, "2"},
		{"after, and its agent takes that back", true, func(tx *state.Tx) error {
			return errors.Join(tx.SetUnitCharm("mysql/0", "local:jammy/mysql-3"), tx.PutWorkflow("mysql/0", state.Workflow{}), dead(tx))
		}, true, "2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			st := statetest.NewOf(t, remote())
			statetest.AddService(t, st, statetest.MySQL(), 1)
			if test.started {
				statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetInstance("1", "i-1", state.Addresses{}) })
			}
			statetest.Update(t, st, test.leaves)
			machines := statetest.Read(t, st, func(v *state.View) ([]state.Machine, error) { return v.Machines() })
			if there := slices.ContainsFunc(machines, func(m state.Machine) bool { return m.ID == "1" }); there != test.machine {
				t.Errorf("machine 1 is there: %v", there)
			}
			if got := placed(t, st, ""); got != test.next {
				t.Errorf("the next unit is on machine %s, want %s", got, test.next)
			}
		})
	}
	st := statetest.NewOf(t, remote())
	statetest.AddService(t, st, statetest.MySQL(), 1)
	if err := st.ForceRemoveUnit(t.Context(), "mysql/0"); err != nil {
		t.Fatal(err)
	}
	if m := statetest.Read(t, st, func(v *state.View) ([]state.Machine, error) { return v.Machines() }); len(m) != 1 {
		t.Errorf("after a forced removal: %+v", m)
	}
}

// TestSpareMachinesInOrder checks that spare machines are taken in the order of their numbers, even in one
// transaction. A machine that was added for a unit must not become spare when the unit leaves.
func TestSpareMachinesInOrder(t *testing.T) {
	st := statetest.NewOf(t, remote())
	statetest.AddService(t, st, statetest.MySQL(), 1) // machine 1
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyUnit("mysql/0") })
	if _, err := st.AddMachines(t.Context(), 10, state.Machine{}); err != nil {
		t.Fatal(err)
	}
	units, err := st.AddUnits(t.Context(), "mysql", 11, state.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	for i, u := range units {
		if u.Machine != fmt.Sprint(i+2) {
			t.Errorf("%s is on machine %s, want %d", u.Name, u.Machine, i+2)
		}
	}
}

// TestSpareMachinesAtOnce checks that two units never get the same spare machine if they are added at the
// same time.
func TestSpareMachinesAtOnce(t *testing.T) {
	env := remote()
	url := "sqlite:" + filepath.Join(t.TempDir(), "state.db")
	if err := state.Create(t.Context(), url, env); err != nil {
		t.Fatal(err)
	}
	st := statetest.Open(t, url)
	statetest.AddService(t, st, statetest.MySQL(), 0)
	if _, err := st.AddMachines(t.Context(), 4, state.Machine{}); err != nil {
		t.Fatal(err)
	}
	var adding sync.WaitGroup
	for range 6 {
		adding.Go(func() {
			if _, err := st.AddUnits(t.Context(), "mysql", 1, state.Placement{}); err != nil {
				t.Error(err)
			}
		})
	}
	adding.Wait()
	var on []string
	for _, u := range statetest.Read(t, st, func(v *state.View) ([]state.Unit, error) { return v.Units("mysql") }) {
		on = append(on, u.Machine)
	}
	slices.Sort(on)
	if d := cmp.Diff([]string{"1", "2", "3", "4", "5", "6"}, on); d != "" {
		t.Error(d)
	}
}

func TestMachinePlacement(t *testing.T) {
	for _, test := range []struct{ provider, placement, where, refusal string }{
		{"ssh", "ssh:me@host:22", "me@host:22", ""},
		{"ssh", "ssh:me@[::1]:22", "me@[::1]:22", ""},
		{"ssh", "nspawn:x", "", `placement "nspawn:x" is for the provider "nspawn", but this model has "ssh"`},
		{"ssh", "host", "", `invalid placement "host": want PROVIDER:WHERE, as in ssh:user@host`},
		{"ssh", "ssh:", "", "invalid placement"},
		{"ssh", ":host", "", "invalid placement"},
		{"ssh", "ssh:a b", "", "invalid placement"},
		{"ssh", "ssh:a\x1b", "", "invalid placement"},
		{"ssh", "ssh:taken", "", `machine 1 is already at "ssh:taken"`},
		{"local", "ssh:host", "", `is for the provider "ssh", but this model has "local"`},
		{"local", "local:x", "", `the machines of the provider "local" are all on this host`},
	} {
		env := statetest.Environment()
		env.Provider = test.provider
		st := statetest.NewOf(t, env)
		if test.provider == "ssh" {
			statetest.Update(t, st, func(tx *state.Tx) error {
				_, err := tx.AddMachine(state.Machine{Placement: "ssh:taken"})
				return err
			})
		}
		var got state.Machine
		err := st.Update(t.Context(), func(tx *state.Tx) (err error) {
			got, err = tx.AddMachine(state.Machine{Placement: test.placement})
			return err
		})
		if test.refusal == "" && (err != nil || got.Placement != test.where) || test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)) {
			t.Errorf("%q: placement %q, error %v; want %q, %q", test.placement, got.Placement, err, test.where, test.refusal)
		}
	}
}

// TestMachineSeries checks which series are allowed for machines, and which of a charm's series is chosen.
func TestMachineSeries(t *testing.T) {
	made := []string{"resolute", "noble", "jammy", "focal", "bionic", "trixie", "bookworm", "bullseye"}
	with := func(series string) []string {
		isIt := func(other string) bool { return other == series }
		return append([]string{series}, slices.DeleteFunc(slices.Clone(made), isIt)...)
	}
	for name, tt := range map[string]struct {
		provider, host string
		config         map[string]string
		want           []string
		wish, chosen   string // the series that the operator asks for and the one that is chosen; "" if it is refused
	}{
		"processes":               {"local", "bookworm", nil, []string{"bookworm"}, "jammy", ""},
		"any":                     {"ssh", "", nil, nil, "jammy", "jammy"},
		"containers":              {"nspawn", "bookworm", nil, with("bookworm"), "jammy", "jammy"},
		"containers, not a known": {"nspawn", "bookworm", nil, with("bookworm"), "centos7", ""},
		"containers of a mirror": {
			"nspawn", "bookworm", map[string]string{"nspawn.mirror.sid": "http://x", "nspawn.mirror.jammy": "http://x", "other.mirror.a": "", "nspawn.network": ""},
			append([]string{"bookworm", "jammy", "sid"}, slices.DeleteFunc(slices.Clone(made), func(s string) bool { return s == "bookworm" || s == "jammy" })...),
			"sid", "sid",
		},
		"containers of one tree": {"nspawn", "bookworm", map[string]string{"nspawn.tree": "/"}, []string{"bookworm"}, "jammy", ""},
		"containers of two trees": {
			"nspawn", "bookworm", map[string]string{"nspawn.tree": "/", "nspawn.tree.jammy": "/j", "nspawn.tree.bookworm": "/b"},
			[]string{"bookworm", "jammy"}, "jammy", "jammy",
		},
		"one tree, and a mirror": {
			"nspawn", "bookworm", map[string]string{"nspawn.tree": "/", "nspawn.mirror.jammy": "http://x"},
			[]string{"bookworm", "jammy"}, "noble", "",
		},
		"a plugin's": {"rack", "focal", map[string]string{"rack.tree.jammy": "/j"}, []string{"focal", "jammy"}, "noble", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := state.Environment{Provider: tt.provider, DefaultSeries: "bookworm", HostSeries: tt.host, Config: tt.config}
			if diff := cmp.Diff(tt.want, e.MachineSeries()); diff != "" {
				t.Error(diff)
			}
			chosen, err := e.ChooseSeries("", []string{tt.wish}, false)
			if chosen != tt.chosen || (err != nil) != (tt.chosen == "") {
				t.Errorf("a charm for %s: %q, %v; want %q", tt.wish, chosen, err, tt.chosen)
			}
		})
	}
}
