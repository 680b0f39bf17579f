package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/store"
	"bijou/testscripts/kit/statetest"
)

func TestStoreThatIsGoneEndsTheAgent(t *testing.T) {
	st, url := statetest.SQLite(t)
	r := newRig(t, st)
	r.lonely(nil)
	r.start()
	r.awaitState("app/0", "started")
	files, err := filepath.Glob(url[len("sqlite:"):] + "*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no store at %q: %v", url, err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := receive(t, "the agent ends", r.done); !errors.Is(err, state.ErrStoreGone) {
		t.Errorf("the agent ended with %v", err)
	}
	r.stop()
	r.stop = nil
}

func TestMachineThatDoesNotExist(t *testing.T) {
	st := statetest.New(t)
	err := RunMachine(t.Context(), MachineOptions{Machine: "9", Options: Options{State: st, Dir: t.TempDir(), Tools: "/nowhere"}})
	if !errors.Is(err, state.ErrNotFound) {
		t.Errorf("machine 9: %v", err)
	}
	err = RunUnit(t.Context(), UnitOptions{Unit: "app/9", Options: Options{State: st, Dir: t.TempDir(), Tools: "/nowhere"}})
	if !errors.Is(err, state.ErrNotFound) {
		t.Errorf("unit app/9: %v", err)
	}
}

func TestDyingMachineIsMarkedDead(t *testing.T) {
	env := statetest.Environment()
	env.Provider = "nspawn" // each unit gets its own machine
	st := statetest.NewOf(t, env)
	r := newRig(t, st)
	r.lonely(nil)
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetInstance("1", "i-1", state.Addresses{Private: "10.0.0.1"}) })
	done := make(chan error, 1)
	go func() {
		done <- RunMachine(t.Context(), MachineOptions{Machine: "1", Options: Options{State: st, Dir: r.dir, Tools: r.tools, Log: r.log()}})
	}()
	r.awaitState("app/0", "started")
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyUnit("app/0") })
	r.eventually("the unit is gone", func() bool {
		units := statetest.Read(t, st, func(v *state.View) ([]state.Unit, error) { return v.Units("") })
		return len(units) == 0
	})
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyMachine("1") })
	if err := receive(t, "the agent ends", done); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	m := statetest.Read(t, st, func(v *state.View) (state.Machine, error) { return v.Machine("1") })
	if m.Life != state.Dead || m.Addresses.Private != "10.0.0.1" {
		t.Errorf("machine 1: %+v", m)
	}
}

// failsToDie is a store that is away when a machine is first marked as dead.
type failsToDie struct {
	store.Store
	failed atomic.Bool
}

func (s *failsToDie) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	isDeath := slices.ContainsFunc(txn.Ops, func(o store.Op) bool {
		return o.Key == keys.Machine("1") && bytes.Contains(o.Value, []byte(`"dead"`))
	})
	if isDeath && s.failed.CompareAndSwap(false, true) {
		return 0, store.ErrAway
	}
	return s.Store.Commit(ctx, txn)
}

// TestMachineDiesDespiteAnOutage checks that an agent does not end before the store has the death of its machine.
// systemd would not start it again.
func TestMachineDiesDespiteAnOutage(t *testing.T) {
	env := statetest.Environment()
	env.Provider = "nspawn"
	st := statetest.NewOf(t, env)
	statetest.Update(t, st, func(tx *state.Tx) error {
		if _, err := tx.AddMachine(state.Machine{}); err != nil {
			return err
		}
		return tx.SetInstance("1", "i-1", state.Addresses{Private: "10.0.0.1"})
	})
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyMachine("1") })

	var away *failsToDie
	shared := statetest.ShareWrapped(st, func(s store.Store) store.Store {
		away = &failsToDie{Store: s}
		return away
	})
	err := RunMachine(t.Context(), MachineOptions{Machine: "1", Options: Options{
		State: shared, Dir: t.TempDir(), Tools: "/nowhere", Log: slog.New(slog.DiscardHandler),
	}})
	if err != nil {
		t.Fatal(err)
	}
	m := statetest.Read(t, st, func(v *state.View) (state.Machine, error) { return v.Machine("1") })
	if m.Life != state.Dead || !away.failed.Load() {
		t.Errorf("machine 1 is %s after its agent has ended", m.Life)
	}
}
