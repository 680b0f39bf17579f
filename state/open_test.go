package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"sqlite:" + filepath.Join(dir, "none"): "no store",
		"sqlite:" + text:                       "text",
		"mem:x":                                "is for tests: want sqlite:PATH",
		"zookeeper://x":                        `unknown kind of store "zookeeper"`,
		"/a/path":                              "invalid state URL",
		"sqlite:":                              "invalid state URL",
	} {
		st, err := state.Open(t.Context(), url)
		if err == nil {
			st.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q", url, err, want)
		}
	}
	if _, err := state.Open(t.Context(), "sqlite:"+filepath.Join(dir, "none")); !errors.Is(err, state.ErrNoStore) {
		t.Errorf("got %v", err)
	}
}

func TestCreate(t *testing.T) {
	st, url := statetest.SQLite(t)
	if err := state.Create(t.Context(), url, statetest.Environment()); !errors.Is(err, state.ErrStoreExists) {
		t.Errorf("created twice: %v", err)
	}
	m := statetest.Read(t, st, func(v *state.View) (state.Machine, error) { return v.Machine("0") })
	if m.Life != state.Alive || m.Series != "jammy" || m.InstanceID == "" {
		t.Errorf("machine 0: %+v", m)
	}
	if err := state.Create(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "x"), state.Environment{}); err == nil {
		t.Error("an environment without a name was created")
	}
}

// TestTwoOpeners checks that two handles on one file work like two processes: a commit through one handle
// wakes the other.
func TestTwoOpeners(t *testing.T) {
	a, url := statetest.SQLite(t)
	b := statetest.Open(t, url)
	w, err := b.Watch(t.Context(), revision(t, b), state.WatchMachines())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	statetest.Update(t, a, func(tx *state.Tx) error { _, err := tx.AddMachine(state.Machine{}); return err })
	if keys, err := w.Next(t.Context()); err != nil || keys[0] != "machines/1" {
		t.Error(keys, err)
	}
}

func TestTwoOpenersShareOneTruth(t *testing.T) {
	a, url := statetest.SQLite(t)
	b := statetest.Open(t, url)
	statetest.AddService(t, a, statetest.MySQL(), 1)
	statetest.Session(t, a, "unit-mysql-0")
	old := statetest.Claim(t, a, "0", "/m")
	present := func() bool {
		return statetest.Read(t, b, func(v *state.View) (bool, error) { return v.IsPresent("unit-mysql-0") })
	}
	if !present() {
		t.Error("the agent's presence is not seen")
	}
	var all sync.WaitGroup
	for _, st := range []*state.State{a, b} {
		all.Go(func() {
			for range 20 {
				err := st.Update(t.Context(), func(tx *state.Tx) error { _, err := tx.AddUnit("mysql", state.Placement{}); return err })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	units := statetest.Read(t, a, func(v *state.View) ([]state.Unit, error) { return v.Units("mysql") })
	if len(units) != 41 || units[40].Number != 40 {
		t.Errorf("%d units", len(units))
	}
	heir := statetest.Session(t, b, "unit-mysql-0")
	statetest.Claim(t, b, "0", "/m")
	put := func(tx *state.Tx) error { return tx.PutWorkflow("mysql/0", state.Workflow{State: "started"}) }
	if err := state.UpdaterFor(old, "unit-mysql-0")(t.Context(), put); !errors.Is(err, state.ErrClaimLost) {
		t.Errorf("the old agent: %v", err)
	}
	if err := heir.Close(t.Context()); err != nil || present() {
		t.Errorf("present after its session: %v", err)
	}
}
