package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/state"
	"bijou/state/statetest"
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

// Two openers of one file are as two processes: what one commits wakes the other.
func TestTwoOpeners(t *testing.T) {
	a, url := statetest.SQLite(t)
	b := statetest.Open(t, url)
	w, err := b.Watch(t.Context(), revision(t, b), state.WatchMachines())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	statetest.Update(t, a, func(tx *state.Tx) error { _, err := tx.AddMachine(state.MachineSpec{}); return err })
	if keys, err := w.Next(t.Context()); err != nil || keys[0] != "machines/1" {
		t.Error(keys, err)
	}
}
