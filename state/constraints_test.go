package state_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/constraints"
	"bijou/state/statetest"
)

func parsed(t testing.TB, text string) constraints.Value {
	t.Helper()
	v, err := constraints.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// remote is an environment whose units have machines of their own.
func remote() state.Environment {
	env := statetest.Environment()
	env.Provider = "nspawn"
	return env
}

// machines lists what the machines have to satisfy, as "1: mem=2048M".
func machines(t testing.TB, st *state.State) (lines []string) {
	t.Helper()
	for _, m := range statetest.Read(t, st, (*state.View).Machines) {
		lines = append(lines, strings.TrimSpace(m.ID+": "+m.Constraints.String()))
	}
	return lines
}

// placed adds a unit of mysql and answers its machine.
func placed(t testing.TB, st *state.State, to string) (machine string) {
	t.Helper()
	statetest.Update(t, st, func(tx *state.Tx) error {
		u, err := tx.AddUnit("mysql", state.Placement{Machine: to})
		machine = u.Machine
		return err
	})
	return machine
}

// The sequence of the seed: what is asked is taken down when a unit is added, and
// its machine copies it.
func TestConstraintsAreTakenWhenAUnitIsAdded(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetConstraints(parsed(t, "cores=2 mem=1G")) })
		statetest.AddService(t, st, statetest.MySQL(), 0)
		set := func(text string) {
			statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetServiceConstraints("mysql", parsed(t, text)) })
		}
		set("mem=2G")
		placed(t, st, "")
		set("mem=3G")
		placed(t, st, "")
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetConstraints(parsed(t, "arch=arm64")) })
		placed(t, st, "")
		set("instance-type=m1 mem=")
		placed(t, st, "")
		set("arch=")
		if machine := placed(t, st, ""); machine != "0" {
			t.Errorf("a unit that asks for nothing is on machine %s", machine)
		}
		want := []string{"0:", "1: cpu-cores=2 mem=2048M", "2: cpu-cores=2 mem=3072M", "3: arch=arm64 mem=3072M", "4: arch=arm64 instance-type=m1 mem="}
		if d := cmp.Diff(want, machines(t, st)); d != "" {
			t.Error(d)
		}
		units := statetest.Read(t, st, func(v *state.View) ([]state.Unit, error) { return v.Units("mysql") })
		for i, want := range []string{"cpu-cores=2 mem=2048M", "cpu-cores=2 mem=3072M", "arch=arm64 mem=3072M"} {
			if got := units[i].Constraints.String(); got != want {
				t.Errorf("unit %s has %q, want %q", units[i].Name, got, want)
			}
		}
	})
}

func TestMachinesWithoutAUnitTakeTheEnvironments(t *testing.T) {
	env := remote()
	env.Constraints = parsed(t, "mem=1G cores=2")
	st := statetest.NewOf(t, env)
	for _, text := range []string{"", "mem=4G", "instance-type=m1"} {
		statetest.Update(t, st, func(tx *state.Tx) error {
			_, err := tx.AddMachine(state.MachineSpec{Constraints: parsed(t, text)})
			return err
		})
	}
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetConstraints(constraints.Value{}) })
	want := []string{"0: cpu-cores=2 mem=1024M", "1: cpu-cores=2 mem=1024M", "2: cpu-cores=2 mem=4096M", "3: instance-type=m1"}
	if d := cmp.Diff(want, machines(t, st)); d != "" {
		t.Error(d)
	}
}

// A machine that was added is taken by the first unit that it fits, and by no other.
func TestSpareMachines(t *testing.T) {
	for _, test := range []struct {
		name  string
		spec  state.MachineSpec
		spoil func(tx *state.Tx) error
		to    string
		want  string
	}{
		{"fits", state.MachineSpec{}, nil, "", "1"},
		{"has more", state.MachineSpec{Constraints: parsed(t, "mem=4G cores=9")}, nil, "", "1"},
		{"has less", state.MachineSpec{Constraints: parsed(t, "mem=1G")}, nil, "", "2"},
		{"is not known to have it", state.MachineSpec{Constraints: parsed(t, "mem=")}, nil, "", "2"},
		{"has another series", state.MachineSpec{Series: "noble"}, nil, "", "2"},
		{"manages the environment", state.MachineSpec{Jobs: []string{state.JobManage, state.JobUnits}}, nil, "", "2"},
		{"manages, and is asked for", state.MachineSpec{Jobs: []string{state.JobManage, state.JobUnits}}, nil, "1", "1"},
		{"is in error", state.MachineSpec{}, func(tx *state.Tx) error { return tx.SetMachineStatus("1", state.MachineError, "no") }, "", "2"},
		{"is dying", state.MachineSpec{}, func(tx *state.Tx) error {
			return errors.Join(tx.SetInstance("1", "i-1", state.Addresses{}), tx.DestroyMachine("1"))
		}, "", "2"},
		{"is gone", state.MachineSpec{}, func(tx *state.Tx) error { return tx.DestroyMachine("1") }, "", "2"},
		{"is not wanted", state.MachineSpec{}, nil, "new", "2"},
		{"is asked for", state.MachineSpec{Constraints: parsed(t, "mem=1G")}, nil, "1", "1"},
		{"is asked for by another before", state.MachineSpec{}, func(tx *state.Tx) error {
			_, err := tx.AddUnit("mysql", state.Placement{Machine: "1"})
			return errors.Join(err, tx.DestroyUnit("mysql/0"))
		}, "", "2"},
		{"was started anew for more", state.MachineSpec{Constraints: parsed(t, "mem=1G")}, func(tx *state.Tx) error {
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

// In the order of their numbers, also within one transaction; a machine for a unit
// is no spare one after it.
func TestSpareMachinesInOrder(t *testing.T) {
	st := statetest.NewOf(t, remote())
	statetest.AddService(t, st, statetest.MySQL(), 1) // machine 1
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyUnit("mysql/0") })
	if _, err := st.AddMachines(t.Context(), 10, state.MachineSpec{}); err != nil {
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

func TestSubordinatesHaveNoConstraints(t *testing.T) {
	st := statetest.New(t)
	c := statetest.AddCharm(t, st, endpointCharms()["logger"])
	mem := parsed(t, "mem=2G")
	addLogger := func(v constraints.Value) error {
		return st.Update(t.Context(), func(tx *state.Tx) error {
			_, err := tx.AddService(state.ServiceSpec{Name: "logger", Charm: c.URL, Constraints: v})
			return err
		})
	}
	const want = "a subordinate cannot have constraints"
	if err := addLogger(mem); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("added: %v", err)
	}
	if err := addLogger(constraints.Value{}); err != nil {
		t.Fatal(err)
	}
	err := st.Update(t.Context(), func(tx *state.Tx) error { return tx.SetServiceConstraints("logger", mem) })
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("set: %v", err)
	}
	err = st.Update(t.Context(), func(tx *state.Tx) error { return tx.SetServiceConstraints("nosuch", mem) })
	if !errors.Is(err, state.ErrNotFound) {
		t.Errorf("set of no service: %v", err)
	}
}

func TestResolveMachine(t *testing.T) {
	st := statetest.NewOf(t, remote())
	statetest.AddService(t, st, statetest.MySQL(), 0)
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetServiceConstraints("mysql", parsed(t, "mem=2P cores=2")) })
	placed(t, st, "")
	more := parsed(t, "mem=3G cpu-power=400")
	resolve := func(id string, c *constraints.Value) error {
		return st.Update(t.Context(), func(tx *state.Tx) error { return tx.ResolveMachine(id, c) })
	}
	if err := resolve("1", &more); !errors.Is(err, state.ErrNotInError) || err.Error() != "machine 1 is not in error" {
		t.Errorf("not in error: %v", err)
	}
	if err := resolve("7", nil); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("no machine: %v", err)
	}
	for i, c := range []*constraints.Value{nil, &more} {
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetMachineStatus("1", state.MachineError, "too much") })
		if err := resolve("1", c); err != nil {
			t.Fatal(err)
		}
		m := statetest.Read(t, st, func(v *state.View) (state.Machine, error) { return v.Machine("1") })
		want := []string{"cpu-cores=2 mem=2147483648M", "cpu-power=400 mem=3072M"}[i]
		if m.Status != state.MachinePending || m.Message != "" || m.Constraints.String() != want {
			t.Errorf("machine %+v, want %q", m, want)
		}
	}
	u := statetest.Read(t, st, func(v *state.View) (state.Unit, error) { return v.Unit("mysql/0") })
	if got := u.Constraints.String(); got != "cpu-cores=2 mem=2147483648M" {
		t.Errorf("the unit has %q", got)
	}
}

func TestMachinePlacement(t *testing.T) {
	for _, test := range []struct{ provider, placement, where, refusal string }{
		{"ssh", "ssh:me@host:22", "me@host:22", ""},
		{"ssh", "ssh:me@[::1]:22", "me@[::1]:22", ""},
		{"ssh", "nspawn:x", "", `placement "nspawn:x" is for the provider "nspawn", and this environment has "ssh"`},
		{"ssh", "host", "", `invalid placement "host": want PROVIDER:WHERE, as in ssh:user@host`},
		{"ssh", "ssh:", "", "invalid placement"},
		{"ssh", ":host", "", "invalid placement"},
		{"ssh", "ssh:a b", "", "invalid placement"},
		{"ssh", "ssh:a\x1b", "", "invalid placement"},
		{"ssh", "ssh:taken", "", `machine 1 is at "ssh:taken" already`},
		{"local", "ssh:host", "", `is for the provider "ssh", and this environment has "local"`},
		{"local", "local:x", "", `the machines of the provider "local" are all on this host`},
	} {
		env := statetest.Environment()
		env.Provider = test.provider
		st := statetest.NewOf(t, env)
		if test.provider == "ssh" {
			statetest.Update(t, st, func(tx *state.Tx) error {
				_, err := tx.AddMachine(state.MachineSpec{Placement: "ssh:taken"})
				return err
			})
		}
		var got state.Machine
		err := st.Update(t.Context(), func(tx *state.Tx) (err error) {
			got, err = tx.AddMachine(state.MachineSpec{Placement: test.placement})
			return err
		})
		if test.refusal == "" && (err != nil || got.Placement != test.where) || test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)) {
			t.Errorf("%q: placement %q, error %v; want %q, %q", test.placement, got.Placement, err, test.where, test.refusal)
		}
	}
}

func TestProviderConfig(t *testing.T) {
	st := statetest.NewOf(t, remote())
	set := func(key, value string) error {
		return st.Update(t.Context(), func(tx *state.Tx) error { return tx.SetEnvironment(map[string]*string{key: &value}) })
	}
	for _, key := range []string{"nspawn.apt-repository", "nspawn.a.b", "hook-concurrency"} {
		if err := set(key, "7"); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, key := range []string{"ssh.pool", "nspawn.", "nspawn.A", "nspawn. x", "nspawn", "nspawn.a..b", "nosuch"} {
		if err := set(key, "7"); err == nil || !strings.Contains(err.Error(), "unknown environment setting") || !strings.Contains(err.Error(), "nspawn.KEY") {
			t.Errorf("%s: %v", key, err)
		}
	}
	env := statetest.Read(t, st, (*state.View).Environment)
	if d := cmp.Diff(map[string]string{"apt-repository": "7", "a.b": "7"}, env.ProviderConfig()); d != "" {
		t.Error(d)
	}
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetEnvironment(map[string]*string{"nspawn.a.b": nil}) })
	if env = statetest.Read(t, st, (*state.View).Environment); len(env.ProviderConfig()) != 1 {
		t.Errorf("left: %v", env.Config)
	}
}
