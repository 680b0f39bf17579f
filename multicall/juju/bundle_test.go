package juju

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bijou/multicall/console"
	"bijou/multicall/juju/bundle"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/constraints"
	"bijou/state/text"
	"bijou/testscripts/kit/statetest"

	"github.com/google/go-cmp/cmp"
)

// bundleWorld deploys into environments in memory, from charms in one directory.
type bundleWorld struct {
	t      *testing.T
	charms string
	o      *operator
}

func newBundleWorld(t *testing.T) bundleWorld {
	w := bundleWorld{t, t.TempDir(), &operator{ctx: t.Context(), streams: console.Streams{Out: io.Discard, Err: io.Discard}}}
	for _, name := range []string{"a", "b", "c"} {
		statetest.Files{
			"metadata.yaml": "name: " + name + "\nsummary: s\nprovides: {out: x}\nrequires: {in: x}\npeers: {ring: r}\nresources: {res: {type: file}}\n" +
				"storage: {data: {type: filesystem, minimum-size: 1G}, more: {type: filesystem, multiple: {range: 0-}}}\n",
			"config.yaml": "options: {text: {type: string}, n: {type: int, default: 3}, f: {type: float}, yes: {type: boolean}}\n",
		}.Write(t, filepath.Join(w.charms, name))
	}
	return w
}

func (w bundleWorld) newEnvironment(provider string) *state.State {
	env := statetest.Environment()
	env.Provider = provider
	return statetest.NewOf(w.t, env)
}

// deploy carries out the first n steps of a bundle's deployment, or all steps if n is -1.
func (w bundleWorld) deploy(s *state.State, file string, steps int) (done int) {
	w.t.Helper()
	cmd := deployCmd{AllowOutside: true}
	f := w.compare(s, file)
	for _, step := range f.Plan() {
		if done == steps {
			return done
		}
		if err := (bundleExecutor{w.o, s, s, cmd, f.MachinesThere(), f}).execute(step); err != nil {
			w.t.Fatalf("%s %s: %v", step.Action, step.What, err)
		}
		done++
	}
	return done
}

func (w bundleWorld) compare(s *state.State, file string) *bundle.Comparison {
	w.t.Helper()
	f, err := deployCmd{AllowOutside: true}.compareBundle(w.o, s, file, w.t.TempDir())
	if err != nil {
		text, _ := os.ReadFile(file)
		w.t.Fatalf("%v in\n%s", err, text)
	}
	return f
}

func (w bundleWorld) export(s *state.State) string {
	w.t.Helper()
	env, err := state.Read(w.t.Context(), s, bundle.ReadEnvironment)
	if err != nil {
		w.t.Fatal(err)
	}
	b, _ := bundle.Export(env)
	text, err := text.MarshalYAML(b)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

func (w bundleWorld) write(text string) string {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "bundle.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return file
}

// fill creates a random environment that operators could create too.
func (w bundleWorld) fill(s *state.State, r *rand.Rand) {
	var services []string
	for i := range 1 + r.IntN(4) {
		name := []string{"a", "b", "c"}[r.IntN(3)]
		release, err := charmSource{name: filepath.Join(w.charms, name)}.find(w.t.Context(), "")
		if err != nil {
			w.t.Fatal(err)
		}
		service := state.Service{Name: fmt.Sprintf("s%d", i), Constraints: randomConstraints(w.t, r), Storage: map[string]charm.Directive{}}
		config := map[string]any{}
		for option, value := range map[string]any{"text": []string{"", "yes", "1.10", "null", "~", "include-this", "a\n b\t\x01é", " "}[r.IntN(8)], "n": int64(r.IntN(9)), "f": 2.0, "yes": true} {
			if r.IntN(2) == 0 {
				config[option] = value
			}
		}
		if r.IntN(2) == 0 {
			service.Storage["more"] = charm.Directive{Pool: []string{"", "host:/srv/x"}[r.IntN(2)], Size: r.Int64N(3) << 9, Count: r.IntN(3)}
		}
		files := map[string]string{}
		if r.IntN(3) == 0 {
			files["res"] = filepath.Join(w.charms, name, "metadata.yaml")
		}
		d := deployment{o: w.o, state: s, release: release, service: service, config: config, files: files}
		if err := d.run(); err != nil {
			w.t.Fatal(err)
		}
		services = append(services, service.Name)
	}
	for range r.IntN(12) {
		service := services[r.IntN(len(services))]
		p := state.Placement{Machine: []string{"", state.PlaceNew, "0", "1", "2"}[r.IntN(5)]}
		_, _ = s.AddUnits(w.t.Context(), service, 1, p) // machine 2 may not exist yet
		other := services[r.IntN(len(services))]
		_ = s.Update(w.t.Context(), func(tx *state.Tx) error {
			_, err := tx.AddRelation(state.Endpoint{Service: service, Name: "out", Role: "provides"}, state.Endpoint{Service: other, Name: "in", Role: "requires"})
			return err
		})
		if err := s.Update(w.t.Context(), func(tx *state.Tx) error { return tx.SetExposed(other, r.IntN(2) == 0) }); err != nil {
			w.t.Fatal(err)
		}
		if r.IntN(6) == 0 {
			_, _ = s.AddMachines(w.t.Context(), 1, state.Machine{Constraints: randomConstraints(w.t, r)})
		}
		if r.IntN(6) == 0 {
			_ = s.Update(w.t.Context(), func(tx *state.Tx) error { return tx.DestroyUnit(service + "/0") })
		}
	}
}

func randomConstraints(t *testing.T, r *rand.Rand) constraints.Value {
	v, err := constraints.Parse([]string{"", "", "mem=1G", "cpu-cores=2 mem=", "tags=x,^y"}[r.IntN(5)])
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestExportedAgain exports random environments and deploys the exports into new ones. Each deployment
// is killed after a random number of steps and repeated. The results must be equal.
func TestExportedAgain(t *testing.T) {
	w := newBundleWorld(t)
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 17))
		provider := []string{state.ProviderLocal, "nspawn"}[r.IntN(2)]
		first := w.newEnvironment(provider)
		w.fill(first, r)
		exported := w.export(first)
		file := w.write(exported)
		if f := w.compare(first, file); len(f.Plan()) > 0 || len(f.Diff()) > 0 {
			t.Fatalf("seed %d: differs from its own export: %v, %v\n%s", seed, f.Plan(), f.Diff(), exported)
		}
		second := w.newEnvironment(provider)
		for w.deploy(second, file, 1+r.IntN(3)) > 0 {
		}
		if f := w.compare(second, file); len(f.Diff()) > 0 {
			t.Fatalf("seed %d: %v\n%s", seed, f.Diff(), exported)
		}
		if diff := cmp.Diff(exported, w.export(second)); diff != "" {
			t.Fatalf("seed %d: exported, deployed, exported: %s", seed, diff)
		}
		if diff := cmp.Diff(shape(t, first), shape(t, second)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

// shape returns the sets of units that share a machine, and the machines' constraints, without the machines'
// numbers.
func shape(t *testing.T, s *state.State) (machines []string) {
	env, err := state.Read(t.Context(), s, bundle.ReadEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	on := map[string][]string{}
	for name, s := range env.Services {
		for _, u := range s.Units {
			on[u.Machine] = append(on[u.Machine], name)
		}
	}
	for _, m := range env.Machines {
		if names := on[m.ID]; len(names) > 0 {
			slices.Sort(names)
			machines = append(machines, strings.Join(names, " ")+" on "+m.Constraints.String())
		}
	}
	slices.Sort(machines)
	return machines
}

// TestPlaces deploys bundles in one go, and also killed after each step. Both must place the same units
// together.
func TestPlaces(t *testing.T) {
	w := newBundleWorld(t)
	for _, tc := range []struct {
		provider, apps string
		want           []string
	}{
		{"local", "a: {num_units: 2}", []string{"a a on "}},
		{"far", "a: {num_units: 3}", []string{"a on ", "a on ", "a on "}},
		{"local", "a: {num_units: 2, to: [new]}", []string{"a on ", "a on "}},
		{"far", "a: {num_units: 2}\n  b: {num_units: 2, to: [a]}", []string{"a b on ", "a b on "}},
		{"far", "a: {num_units: 2, to: [b/1, new]}\n  b: {num_units: 2, to: [c]}\n  c: {num_units: 2, to: [\"7\", new]}", []string{"a b c on ", "a on ", "b c on mem=7M"}},
		{"local", "a: {num_units: 3, to: [\"0\", \"7\"]}\n  b: {num_units: 1, to: a/2}", []string{"a a b on mem=7M", "a on "}},
		{"far", "a: {num_units: 2, to: [\"7\", \"1\"]}\n  b: {num_units: 2, to: [\"1\", \"7\"]}", []string{"a b on ", "a b on mem=7M"}},
	} {
		text := "applications:\n  " + strings.ReplaceAll(tc.apps, ": {", ": {charm: "+w.charms+"/a, ") + "\nmachines: {"
		for id, constraints := range map[string]string{"0": "", "1": "", "7": "mem=7M"} {
			if strings.Contains(tc.apps, `"`+id+`"`) {
				text += fmt.Sprintf("%s: {constraints: %q}, ", id, constraints)
			}
		}
		file := w.write(strings.TrimSuffix(text, ", ") + "}\n")
		for steps := range 9 {
			s := w.newEnvironment(tc.provider)
			w.deploy(s, file, steps)
			w.deploy(s, file, -1)
			if diff := cmp.Diff(tc.want, shape(t, s)); diff != "" {
				t.Errorf("%s, killed after %d steps: %s", tc.apps, steps, diff)
			}
			if f := w.compare(s, file); len(f.Plan()) > 0 || len(f.Diff()) > 0 {
				t.Errorf("%s, killed after %d steps: left are %v, %v", tc.apps, steps, f.Plan(), f.Diff())
			}
		}
	}
}

// TestUnitsThatWentAreReplaced checks that a new unit replaces a removed one.
func TestUnitsThatWentAreReplaced(t *testing.T) {
	w := newBundleWorld(t)
	file := w.write("applications: {a: {charm: " + w.charms + "/a, num_units: 2, to: [\"5\", \"6\"]}, b: {charm: " + w.charms + "/b, num_units: 1, to: [\"6\"]}}\nmachines: {5: {constraints: mem=5M}, 6: {constraints: mem=6M}}\n")
	s := w.newEnvironment("far")
	w.deploy(s, file, -1)
	if err := s.Update(t.Context(), func(tx *state.Tx) error { return tx.DestroyUnit("a/1") }); err != nil {
		t.Fatal(err)
	}
	if n := w.deploy(s, file, -1); n != 1 {
		t.Errorf("%d steps, want 1", n)
	}
	if diff := cmp.Diff([]string{"a b on mem=6M", "a on mem=5M"}, shape(t, s)); diff != "" {
		t.Error(diff)
	}
}

// TestForcedSeries checks that a second deployment of a bundle with a forced series has nothing left to
// do.
func TestForcedSeries(t *testing.T) {
	w := newBundleWorld(t)
	file := w.write("series: precise\napplications: {a: {charm: " + w.charms + "/a, num_units: 1, to: [\"1\"]}}\nmachines: {1: {series: precise}}\nrelations: []\n")
	s := w.newEnvironment("local")
	cmd := deployCmd{ForceSeries: true}
	for _, want := range []int{2, 0} {
		f, err := cmd.compareBundle(w.o, s, file, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		steps := f.Plan()
		for _, step := range steps {
			if err := (bundleExecutor{w.o, s, s, cmd, f.MachinesThere(), f}).execute(step); err != nil {
				t.Fatal(err)
			}
		}
		if len(steps) != want {
			t.Errorf("steps %v, want %d", steps, want)
		}
	}
}

// TestRepository checks that charms are looked up by name in the repository, and that the charms of a changed
// file are used.
func TestRepository(t *testing.T) {
	w := newBundleWorld(t)
	file := w.write("applications: {x: {charm: a}, y: {charm: local:b}, z: {charm: \"cs:c\"}}\n")
	t.Setenv("BIJOU_CHARMHUB_URL", "http://127.0.0.1:9")
	if _, err := (deployCmd{}).compareBundle(w.o, w.newEnvironment("far"), file, t.TempDir()); err == nil || !strings.Contains(err.Error(), "cannot reach 127.0.0.1:9") {
		t.Error(err)
	}
	s, cmd := w.newEnvironment("far"), deployCmd{Repository: w.charms, Overlay: []string{w.write("applications: {z: }\n")}}
	var actions []bundle.Action
	for range 3 {
		f, err := cmd.compareBundle(w.o, s, file, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range f.Plan() {
			actions = append(actions, step.Action)
			if err := (bundleExecutor{w.o, s, s, cmd, f.MachinesThere(), f}).execute(step); err != nil {
				t.Fatal(err)
			}
		}
		statetest.Files{"hooks/start": "#!/bin/sh\n"}.Write(t, filepath.Join(w.charms, "b"))
	}
	if diff := cmp.Diff([]bundle.Action{bundle.Deploy, bundle.Deploy, bundle.Upgrade}, actions); diff != "" {
		t.Error(diff)
	}
}

// TestExportLeavesOut checks that an export leaves out dying units and machines.
func TestExportLeavesOut(t *testing.T) {
	w := newBundleWorld(t)
	s := w.newEnvironment("far")
	w.deploy(s, w.write("applications: {a: {charm: "+w.charms+"/a, num_units: 1}, b: {charm: "+w.charms+"/b, num_units: 1}}\nrelations: [[\"a:in\", \"b:out\"]]\n"), -1)
	kept := w.export(s)
	if err := s.Update(t.Context(), func(tx *state.Tx) error { return tx.SetInstance("2", "i", state.Addresses{}) }); err != nil {
		t.Fatal(err)
	}
	if err := s.DestroyService(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	text := w.export(s)
	if !strings.Contains(kept, "/b\n") || strings.Contains(text, "/b\n") || strings.Contains(text, "relations") || strings.Contains(text, `"2"`) {
		t.Errorf("%s", text)
	}
	w.deploy(w.newEnvironment("far"), w.write(text), -1)
}

// TestPlanRefuses checks faults that can be found only by comparison with the environment and the charms.
func TestPlanRefuses(t *testing.T) {
	w := newBundleWorld(t)
	app := func(rest string) string { return "  a: {charm: " + w.charms + "/a" + rest + "}\n" }
	statetest.Files{
		"metadata.yaml":   "name: other\nsummary: s\nassumes: [juju >= 99.0]\n",
		"charmcraft.yaml": "bases: [{name: ubuntu, channel: '22.04', architectures: [s390x]}]\n",
	}.Write(t, filepath.Join(w.charms, "other"))
	for text, want := range map[string]string{
		app(", constraints: cheese=edam"):                                                                   `unknown constraint "cheese"`,
		app(", series: precise, base: ubuntu@20.04"):                                                        "are not the same",
		app(", base: Plan 9"):                                                                               `invalid series name "Plan 9"`,
		"  a: {charm: " + w.charms + "/other, base: ubuntu@20.04}\n":                                        `does not support series "focal"`,
		"  a: {charm: " + w.charms + "/other, base: ubuntu@22.04}\n":                                        `on series "jammy": it supports ["s390x"]`,
		"  a: {charm: " + w.charms + "/other, base: ubuntu@22.04, constraints: arch=s390x}\n":               "needs juju >= 99.0",
		app(", resources: {nosuch: a}"):                                                                     "no such file",
		app(", num_units: 1, to: b") + "  b: {charm: ./x, num_units: 1, to: a}\n":                           "placed beside itself",
		app(", num_units: 1, to: b/1") + "  b: {charm: ./x, num_units: 1}\n":                                `cannot place a unit beside "b/1": application "b" has 1 units`,
		app("") + "  b: {charm: ./x, series: precise}\nrelations: [[a:in, b:out], [b:out, a:in], [a, a]]\n": "cannot be related to itself",
		app("") + "relations: [[a, a]]\n":                                                                   "cannot be related to itself",
		app(", num_units: 1, to: \"1\"") + "machines: {1: {series: noble}}\n":                               `the bundle requires series "noble"`,
		app(", num_units: 1, to: \"1\"") + "machines: {1: {constraints: mem=x}}\n":                          `bad "mem" constraint`,
	} {
		text = strings.ReplaceAll(text, "./x", w.charms+"/b")
		_, err := deployCmd{}.compareBundle(w.o, w.newEnvironment("far"), w.write("applications:\n"+text), t.TempDir())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
