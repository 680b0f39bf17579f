package provision

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/provision/provider"
	"bijou/state"
	"bijou/testscripts/fakes/dummy"
)

func TestRunLeavesFailedMachinesToTheOperator(t *testing.T) {
	inWorld(t, func(w *world) {
		w.order(startOrder(dummy.StartOrder{Fail: "no room"}))
		id := w.add()
		m, err := w.machine(id)
		if err != nil || m.Status != state.MachineError || m.Message != "no room" || m.InstanceID != "" || !m.RetryAt.IsZero() {
			t.Errorf("machine %+v, error %v", m, err)
		}
		w.settle(time.Hour)
		w.wantStarts(1)
		w.update(func(tx *state.Tx) error { return tx.ResolveMachine(id, nil) })
		w.settle(time.Second)
		w.wantStarts(2) // the second start fails too
		w.order(dummy.Orders{})
		w.update(func(tx *state.Tx) error { return tx.ResolveMachine(id, nil) })
		w.wantInstance(id, "dummy-1-1")
	})
}

func TestRunRetriesTransientFailures(t *testing.T) {
	inWorld(t, func(w *world) {
		w.order(startOrder(dummy.StartOrder{Busy: "no room now"}))
		begin := time.Now()
		id := w.add()
		m, err := w.machine(id)
		if err != nil || m.Status != state.MachineError || !strings.HasPrefix(m.Message, "no room now") || m.Attempts != 1 ||
			m.RetryAt.Sub(begin).Round(time.Second) != minRetryDelay {
			t.Errorf("machine %+v, error %v", m, err)
		}
		w.settle(35 * time.Second) // 10 s, then 20 s
		w.wantStarts(3)
		w.settle(10 * time.Hour)
		if m, err = w.machine(id); err != nil || time.Until(m.RetryAt) > maxRetryDelay {
			t.Errorf("machine %+v, error %v", m, err)
		}
		w.order(dummy.Orders{})
		w.settle(maxRetryDelay)
		w.wantInstance(id, "dummy-1-1")
		if m, _ := w.machine(id); m.Message != "" || m.Attempts != 0 || !m.RetryAt.IsZero() || m.Status != state.MachinePending {
			t.Errorf("machine %+v", m)
		}
	})
}

// TestRunKeepsWhatIsNotListed checks a recorded instance that the provider no longer lists, for example
// because its host does not answer. The provisioner restarts the instance by its ID, and keeps the record of
// the instance if that fails. It stops the instance before it removes the machine.
func TestRunKeepsWhatIsNotListed(t *testing.T) {
	inWorld(t, func(w *world) {
		id := w.add()
		w.wantInstance(id, "dummy-1-1")
		orders := startOrder(dummy.StartOrder{Busy: "its host is silent"})
		orders.List.Omit = []string{"dummy-1-1"}
		w.order(orders)
		w.settle(2 * planInterval)
		m, err := w.machine(id)
		if err != nil || m.InstanceID != "dummy-1-1" || m.Status != state.MachineError || m.Attempts == 0 {
			t.Errorf("machine %+v, error %v", m, err)
		}
		w.calls.mu.Lock()
		if asked := w.calls.specs[len(w.calls.specs)-1]; asked.Instance != "dummy-1-1" {
			t.Errorf("asked to start %+v", asked)
		}
		w.calls.mu.Unlock()
		w.update(func(tx *state.Tx) error { return errors.Join(tx.DestroyMachine(id), tx.SetMachineDead(id)) })
		w.wantGone(id)
		w.wantInstances()
	})
}

// TestRunRetriesResolvedMachinesAtOnce checks that a machine is retried as soon as an operator resolves it,
// even if its backoff is not over.
func TestRunRetriesResolvedMachinesAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.order(startOrder(dummy.StartOrder{Busy: "no room now"}))
		id := w.add()
		w.settle(time.Hour)
		w.order(dummy.Orders{})
		w.update(func(tx *state.Tx) error { return tx.ResolveMachine(id, nil) })
		w.wantInstance(id, "dummy-1-1")
	})
}

// TestRunTriesAgainWhatWasResolvedDuringATry checks that a failing start does not overwrite the answer that
// an operator has given during it.
func TestRunTriesAgainWhatWasResolvedDuringATry(t *testing.T) {
	inWorld(t, func(w *world) {
		w.order(startOrder(dummy.StartOrder{Busy: "no room now"}))
		id := w.add()
		w.settle(time.Second)
		w.order(startOrder(dummy.StartOrder{Pause: time.Minute, Fail: "no room at all"}))
		w.settle(minRetryDelay + time.Second) // the start is repeated
		w.update(func(tx *state.Tx) error { return tx.ResolveMachine(id, nil) })
		w.order(dummy.Orders{})
		w.settle(2 * time.Minute)
		w.wantInstance(id, "dummy-1-1")
	})
}

// TestRunHangingStartsHoldUpNobody checks that a machine starts even if three times as many starts hang as
// may run at the same time.
func TestRunHangingStartsHoldUpNobody(t *testing.T) {
	inWorld(t, func(w *world) {
		orders := dummy.Orders{Start: map[string]dummy.StartOrder{}}
		for n := range 3 * maxRunningJobs {
			orders.Start[fmt.Sprint(n+1)] = dummy.StartOrder{Hang: true}
		}
		w.order(orders)
		for range 3 * maxRunningJobs {
			w.add()
		}
		id := w.add()
		w.settle(4 * slowJobTimeout)
		w.wantInstance(id, "dummy-"+id+"-1")
		if m, err := w.machine("1"); err != nil || m.Status != state.MachinePending {
			t.Errorf("machine %+v, error %v", m, err)
		}
		w.settle(startTimeout)
		m, err := w.machine("1")
		if err != nil || m.Status != state.MachineError || m.RetryAt.IsZero() || !strings.Contains(m.Message, "within 20m0s") {
			t.Errorf("machine %+v, error %v", m, err)
		}
		w.order(dummy.Orders{})
		w.settle(2 * startTimeout)
		w.wantInstance("1", "dummy-1-1")
		w.wantInstances(func() (all []string) {
			for n := range 3*maxRunningJobs + 1 {
				all = append(all, fmt.Sprintf("dummy-%d-1", n+1))
			}
			return sorted(all)
		}()...)
	})
}

// TestRunAbandonsStartsOfMachinesThatWereDestroyed checks that the start of a destroyed machine ends, and
// that no instance remains.
func TestRunAbandonsStartsOfMachinesThatWereDestroyed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.order(startOrder(dummy.StartOrder{Hang: true}))
		id := w.add()
		w.settle(time.Second)
		w.update(func(tx *state.Tx) error { return tx.DestroyMachine(id) })
		w.wantGone(id)
		w.wantInstances()
		w.order(startOrder(dummy.StartOrder{Pause: time.Minute}))
		w.wantInstance(w.add(), "dummy-2-1") // this shows that a slot is free
	})
}

// TestRunStopsWhatWasDestroyedWhileItStarted checks that an instance that appears after its machine was
// destroyed is stopped.
func TestRunStopsWhatWasDestroyedWhileItStarted(t *testing.T) {
	inWorld(t, func(w *world) {
		// Either of the two may lead.
		end := w.provision()
		defer end()
		instance := provider.Instance{ID: "late", Environment: "u", Machine: "1", Running: true}
		w.update(func(tx *state.Tx) error {
			m, err := tx.AddMachine(state.Machine{})
			return errors.Join(err, tx.SetMachineStatus(m.ID, state.MachineError, "held"))
		})
		w.update(func(tx *state.Tx) error { return tx.DestroyMachine("1") })
		w.order(dummy.Orders{List: dummy.ListOrder{Add: []provider.Instance{instance}}})
		w.settle(2 * planInterval)
		w.calls.mu.Lock()
		defer w.calls.mu.Unlock()
		if len(w.calls.stops) == 0 || w.calls.stops[0] != "late" {
			t.Errorf("stopped %v", w.calls.stops)
		}
	})
}

// TestRunRepeatsLessAndLess checks that an action that does not help is repeated less and less often. The
// cases are an instance that ends immediately, one that is not listed, and one that cannot be stopped.
func TestRunRepeatsLessAndLess(t *testing.T) {
	t.Run("not told", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.order(dummy.Orders{List: dummy.ListOrder{Omit: []string{"dummy-1-1"}}})
			w.add()
			w.settle(time.Hour)
			w.wantStarts(11) // after 10 s, 20 s, ... 10 min
			w.wantInstances("dummy-1-1")
		})
	})
	t.Run("not stopped", func(t *testing.T) {
		inWorld(t, func(w *world) {
			id := w.add()
			w.wantInstance(id, "dummy-1-1")
			w.order(dummy.Orders{Stop: map[string]string{"dummy-1-1": "it is frozen"}})
			w.update(func(tx *state.Tx) error { return errors.Join(tx.DestroyMachine(id), tx.SetMachineDead(id)) })
			m, err := w.machine(id)
			if err != nil || m.Status != state.MachineError || m.Message != `cannot stop instance "dummy-1-1": it is frozen` {
				t.Errorf("machine %+v, error %v", m, err)
			}
			w.settle(time.Hour)
			w.calls.mu.Lock()
			stops := len(w.calls.stops)
			w.calls.mu.Unlock()
			if stops > 12 {
				t.Errorf("asked %d times to stop it", stops)
			}
			w.order(dummy.Orders{})
			w.settle(maxRetryDelay)
			w.wantGone(id)
			w.wantInstances()
		})
	})
}

// TestRunRefusesFalseAnswers checks that the provisioner refuses a false answer to a start, and stops
// no instance because of it.
func TestRunRefusesFalseAnswers(t *testing.T) {
	tests := map[string]provider.Instance{
		`the provider returned an instance without an id`:                        {Environment: "u", Machine: "1"},
		`the provider returned instance "dummy-2-1" of machine "2"`:              {ID: "dummy-2-1", Environment: "u", Machine: "2"},
		`the provider returned instance "dummy-1-1" of model "x"`:                {ID: "dummy-1-1", Environment: "x", Machine: "1"},
		`the provider returned instance "dummy-2-1", which belongs to machine 2`: {ID: "dummy-2-1", Environment: "u", Machine: "1"},
	}
	for message, answer := range tests {
		t.Run(message, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.order(startOrder(dummy.StartOrder{Fail: "not yet"}))
				id, other := w.add(), w.add()
				w.wantInstance(other, "dummy-2-1")
				w.order(dummy.Orders{
					Start: map[string]dummy.StartOrder{"1": {Answer: &answer}},
					List:  dummy.ListOrder{Omit: []string{"dummy-1-1"}},
				})
				w.update(func(tx *state.Tx) error { return tx.ResolveMachine(id, nil) })
				m, err := w.machine(id)
				if err != nil || m.Status != state.MachineError || !strings.HasPrefix(m.Message, message) {
					t.Errorf("machine %+v, error %v", m, err)
				}
				w.settle(time.Hour)
				w.wantInstance(other, "dummy-2-1")
				w.wantInstances("dummy-1-1", "dummy-2-1")
			})
		})
	}
}

// TestRunOnNoKnowledge checks that the provisioner starts and stops no instance while the provider cannot
// list its instances, and that juju status shows the failure as long as it lasts.
func TestRunOnNoKnowledge(t *testing.T) {
	trouble := func(w *world) (t state.ProvisionerTrouble) {
		w.settle(time.Second)
		if err := w.state.View(w.t.Context(), func(v *state.View) (err error) {
			t, err = v.ProvisionerTrouble()
			return err
		}); err != nil {
			w.t.Fatal(err)
		}
		return t
	}
	tests := []struct {
		list dummy.ListOrder
		want string
	}{
		{dummy.ListOrder{Fail: "401 unauthorized"}, "cannot list instances, so none are started or stopped: 401 unauthorized"},
		{dummy.ListOrder{Hang: true}, "cannot list instances, so none are started or stopped: the provider has not answered for 1m0s"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.order(dummy.Orders{List: tt.list})
				w.settle(2 * planInterval)
				id := w.add()
				w.settle(10 * time.Minute)
				if diff := cmp.Diff([]string{tt.want}, trouble(w).Messages); diff != "" {
					t.Error(diff)
				}
				w.wantStarts(0)
				w.order(dummy.Orders{})
				w.settle(3 * planInterval)
				w.wantInstance(id, "dummy-1-1")
				if got := trouble(w); got.Messages != nil {
					t.Errorf("trouble %v", got)
				}
			})
		})
	}
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}
