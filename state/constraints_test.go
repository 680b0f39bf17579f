package state_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/constraints"
	"bijou/testscripts/kit/statetest"
)

func parsed(t testing.TB, text string) constraints.Value {
	t.Helper()
	v, err := constraints.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// remote returns an environment whose units have their own machines.
func remote() state.Environment {
	env := statetest.Environment()
	env.Provider = "nspawn"
	return env
}

// machines lists the machines' constraints, as "1: mem=2048M".
func machines(t testing.TB, st *state.State) (lines []string) {
	t.Helper()
	for _, m := range statetest.Read(t, st, (*state.View).Machines) {
		lines = append(lines, strings.TrimSpace(m.ID+": "+m.Constraints.String()))
	}
	return lines
}

// placed adds a unit to mysql and returns the unit's machine.
func placed(t testing.TB, st *state.State, to string) (machine string) {
	t.Helper()
	statetest.Update(t, st, func(tx *state.Tx) error {
		u, err := tx.AddUnit("mysql", state.Placement{Machine: to})
		machine = u.Machine
		return err
	})
	return machine
}

// TestConstraintsAreTakenWhenAUnitIsAdded checks that a unit's machine gets the constraints that are in
// force when the unit is added.
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
			_, err := tx.AddMachine(state.Machine{Constraints: parsed(t, text)})
			return err
		})
	}
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetConstraints(constraints.Value{}) })
	want := []string{"0: cpu-cores=2 mem=1024M", "1: cpu-cores=2 mem=1024M", "2: cpu-cores=2 mem=4096M", "3: instance-type=m1"}
	if d := cmp.Diff(want, machines(t, st)); d != "" {
		t.Error(d)
	}
}

func TestSubordinatesHaveNoConstraints(t *testing.T) {
	st := statetest.New(t)
	c := statetest.AddCharm(t, st, endpointCharms()["logger"])
	mem := parsed(t, "mem=2G")
	addLogger := func(v constraints.Value) error {
		return st.Update(t.Context(), func(tx *state.Tx) error {
			_, err := tx.AddService(state.Service{Name: "logger", Charm: c.URL.String(), Constraints: v}, nil)
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
		if err := set(key, "7"); err == nil || !strings.Contains(err.Error(), "unknown model setting") || !strings.Contains(err.Error(), "nspawn.KEY") {
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
