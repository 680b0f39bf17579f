package provision

import (
	"errors"
	"slices"
	"testing"
	"time"

	"bijou/provision/provider"
	"bijou/state"
	"bijou/testscripts/fakes/dummy"
)

func TestRunStartsAndRecords(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.add(), w.add()
		w.wantInstance(a, "dummy-1-1")
		w.wantInstance(b, "dummy-2-1")
		w.wantInstance("0", "localhost")
		w.wantStarts(2)
		m, err := w.machine(a)
		if want := (state.Addresses{Private: "machine-1.dummy", Public: "machine-1.example"}); err != nil || m.Addresses != want {
			t.Errorf("addresses %+v, error %v", m.Addresses, err)
		}
	})
}

func TestRunTakesDeadMachinesDown(t *testing.T) {
	inWorld(t, func(w *world) {
		id := w.add()
		w.wantInstance(id, "dummy-1-1")
		w.update(func(tx *state.Tx) error { return tx.DestroyMachine(id) })
		w.wantInstance(id, "dummy-1-1") // the agent's presence has not ended yet
		w.update(func(tx *state.Tx) error { return tx.SetMachineDead(id) })
		w.wantGone(id)
		w.wantInstances()
	})
}

func TestRunRestartsWhatCrashed(t *testing.T) {
	inWorld(t, func(w *world) {
		id := w.add()
		w.wantInstance(id, "dummy-1-1")
		if err := w.dummy.End("dummy-1-1"); err != nil {
			t.Fatal(err)
		}
		w.settle(2 * planInterval) // the provisioner lists the instances from time to time
		w.wantStarts(2)
		w.wantInstances("dummy-1-1")
	})
}

// TestRunHarvests checks which instances each mode stops, and that the record of a dead machine is removed in
// each mode.
func TestRunHarvests(t *testing.T) {
	kept := map[state.Harvest][]string{
		state.HarvestDestroyed: {"stray"},
		state.HarvestUnknown:   {"dummy-1-1"},
		state.HarvestAll:       nil,
		state.HarvestNone:      {"dummy-1-1", "stray"},
	}
	for mode, want := range kept {
		t.Run(string(mode), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.harvest(mode)
				id := w.add()
				w.wantInstance(id, "dummy-1-1")
				stray := provider.Instance{ID: "stray", Environment: "u", Machine: "77", Running: true}
				w.order(dummy.Orders{List: dummy.ListOrder{Add: []provider.Instance{stray}}})
				w.update(func(tx *state.Tx) error {
					return errors.Join(tx.DestroyMachine(id), tx.SetMachineDead(id))
				})
				w.wantGone(id)
				w.settle(2 * planInterval)
				w.calls.mu.Lock()
				stopped := slices.Clone(w.calls.stops)
				w.calls.mu.Unlock()
				for _, instance := range []string{"dummy-1-1", "stray"} {
					if slices.Contains(stopped, instance) == slices.Contains(want, instance) {
						t.Errorf("stopped %v, want %v to be kept", stopped, want)
					}
				}
			})
		})
	}
}

// TestRunTakesOverMode checks that after a change of the mode, instances that the previous mode has kept are
// stopped too.
func TestRunTakesOverMode(t *testing.T) {
	inWorld(t, func(w *world) {
		w.harvest(state.HarvestNone)
		id := w.add()
		w.wantInstance(id, "dummy-1-1")
		w.update(func(tx *state.Tx) error { return errors.Join(tx.DestroyMachine(id), tx.SetMachineDead(id)) })
		w.wantGone(id)
		w.wantInstances("dummy-1-1")
		w.harvest(state.HarvestDestroyed)
		w.wantInstances()
	})
}

// TestRunLooksOnlyIfSomethingIsWanted checks that the provisioner does not list the provider's instances
// because of changes of agents and boots.
func TestRunLooksOnlyIfSomethingIsWanted(t *testing.T) {
	inWorld(t, func(w *world) {
		id := w.add()
		w.wantInstance(id, "dummy-1-1")
		w.calls.mu.Lock()
		before := w.calls.looks
		w.calls.mu.Unlock()
		for n := range 10 {
			w.update(func(tx *state.Tx) error { return tx.SetMachineTools(id, string(rune('a'+n))) })
			w.settle(time.Second)
		}
		w.calls.mu.Lock()
		defer w.calls.mu.Unlock()
		if w.calls.looks > before+1 {
			t.Errorf("the provider was asked %d times", w.calls.looks-before)
		}
	})
}
