package agents

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/keys"
	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
)

// TestOnlyABinaryThatRunsIsGoneOverTo checks that an agent does not switch to a broken binary, and that an
// agent can end even if the new binary hangs.
func TestOnlyABinaryThatRunsIsGoneOverTo(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		ended  bool // whether the agent is stopped
		want   bool
	}{
		"works":  {script: "#!/bin/sh\nexit 0\n", want: true},
		"fails":  {script: "#!/bin/sh\nexit 1\n"},
		"is cut": {script: "\x7fELF"},
		"hangs":  {script: "#!/bin/sh\nsleep 1000\n", ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			folder := filepath.Join(dir, "tools", "1.0.0-12345678")
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "bijou"), []byte(c.script), 0o700); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.ended {
				cancel()
			}
			h := newHandover(home.Environment{Dir: dir}, "0.9.0-00000000", nil)
			if got := h.prepareReexec(ctx, "1.0.0-12345678"); got != c.want {
				t.Errorf("gone over to: %v, want %v", got, c.want)
			}
		})
	}
}

// TestABinaryThatIsThereIsNotedBeforeItIsGoneOverTo checks a binary that environment.yaml does not name yet,
// as after an interrupted upgrade-model or download. The binary is recorded before an agent switches to it.
// Otherwise agents that start later would switch back.
func TestABinaryThatIsThereIsNotedBeforeItIsGoneOverTo(t *testing.T) {
	const old, next = "0.9.0-00000000", "1.0.0-12345678"
	dir := t.TempDir()
	for _, name := range []string{old, next} {
		folder := filepath.Join(dir, "tools", name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "bijou"), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	e := home.Environment{Dir: dir, Record: home.Record{Name: "default", Tools: old, State: "sqlite:" + filepath.Join(dir, "state.db")}}
	if err := e.Save(); err != nil {
		t.Fatal(err)
	}
	s, err := state.CreateIn(t.Context(), memstore.New(), state.Environment{Name: e.Name, UUID: "u", Provider: state.ProviderLocal, DefaultSeries: "noble", Tools: old})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := newHandover(e, old, nil).ensureTools(t.Context(), s, next); err != nil {
		t.Fatal(err)
	}
	got, err := home.Load(dir)
	if err != nil || got.Tools != next {
		t.Errorf("environment.yaml names %q, want %q; error: %v", got.Tools, next, err)
	}
}

// TestMissingContentIsNoEndOfTheEnvironment checks a binary whose content is missing in the store. The agent must
// report that and try again. It must not take this for the end of the environment, as it would then follow no
// further upgrade.
func TestMissingContentIsNoEndOfTheEnvironment(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	ordered := "1.0.0-" + sum[:8]
	dir := t.TempDir()
	e := home.Environment{Dir: dir, Record: home.Record{Name: "default", State: "sqlite:" + filepath.Join(dir, "state.db")}}
	if err := e.Save(); err != nil {
		t.Fatal(err)
	}

	contents := memstore.New()
	s, err := state.CreateIn(t.Context(), contents, state.Environment{
		Name: e.Name, UUID: "u", Provider: state.ProviderLocal, DefaultSeries: "noble", Tools: ordered,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	record := store.Op{Key: keys.Tool(ordered), Value: []byte(`{"sha256":"` + sum + `","size":5}`)}
	if _, err := contents.Commit(t.Context(), store.Txn{Ops: []store.Op{record}}); err != nil {
		t.Fatal(err)
	}

	err = newHandover(e, "0.9.0-00000000", nil).prepareOrWait(t.Context(), s)
	if err == nil || errors.Is(err, state.ErrNotFound) || !strings.Contains(err.Error(), ordered) {
		t.Errorf("got %v, want an error about %q that is not ErrNotFound", err, ordered)
	}
}
