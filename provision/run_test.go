package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bijou/provision/provider"
	"bijou/state"
)

// fake is a provider in memory.
type fake struct {
	mu        sync.Mutex
	instances map[string]provider.Instance
	fail      map[string]error // by machine
	block     chan struct{}    // starts of machine "1" wait for it; nil: they do not
	starts    []string
}

func newFake() *fake {
	return &fake{instances: map[string]provider.Instance{}, fail: map[string]error{}}
}

func (f *fake) Capabilities(context.Context) (provider.Capabilities, error) {
	return provider.Capabilities{Name: "fake"}, nil
}

func (f *fake) Start(ctx context.Context, s provider.Spec, _ io.Writer) (provider.Instance, error) {
	if f.block != nil && s.Machine == "1" {
		select {
		case <-f.block:
		case <-ctx.Done():
			return provider.Instance{}, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starts = append(f.starts, s.Machine)
	if err := f.fail[s.Machine]; err != nil {
		return provider.Instance{}, err
	}
	i := provider.Instance{ID: "i-" + s.Machine, Environment: s.Environment, Machine: s.Machine, Running: true}
	f.instances[i.ID] = i
	return i, nil
}

func (f *fake) Stop(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.instances, id)
	return nil
}

func (f *fake) Instances(context.Context) ([]provider.Instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []provider.Instance
	for _, i := range f.instances {
		all = append(all, i)
	}
	return all, nil
}

func (f *fake) started() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.starts)
}

// world is an environment with a provisioner at work.
type world struct {
	t     *testing.T
	state *state.State
	fake  *fake
}

// inWorld runs the test in a bubble of its own time.
func inWorld(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		st, err := state.CreateMemory(t.Context(), state.Environment{Name: "e", UUID: "u", Provider: "fake", DefaultSeries: "noble"})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, state: st, fake: newFake()}
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() {
			if err := Run(ctx, Options{State: st, Provider: w.fake, Log: slog.New(slog.DiscardHandler)}); err != nil {
				t.Error(err)
			}
		})
		test(w)
		cancel()
		run.Wait()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (w *world) update(f func(tx *state.Tx) error) {
	w.t.Helper()
	if err := w.state.Update(w.t.Context(), f); err != nil {
		w.t.Fatal(err)
	}
}

// add adds a machine and answers its id.
func (w *world) add() (id string) {
	w.t.Helper()
	w.update(func(tx *state.Tx) error {
		m, err := tx.AddMachine(state.MachineSpec{})
		id = m.ID
		return err
	})
	return id
}

// machine waits for the provisioner to have nothing to do and reads a machine.
func (w *world) machine(id string) (m state.Machine, err error) {
	time.Sleep(time.Second)
	synctest.Wait()
	err = w.state.View(w.t.Context(), func(v *state.View) error {
		m, err = v.Machine(id)
		return err
	})
	return m, err
}

func (w *world) wantInstance(id, instance string) {
	w.t.Helper()
	if m, err := w.machine(id); err != nil || m.InstanceID != instance {
		w.t.Errorf("machine %s has instance %q, error %v; want %q", id, m.InstanceID, err, instance)
	}
}

func TestRunStartsAndRecords(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.add(), w.add()
		w.wantInstance(a, "i-"+a)
		w.wantInstance(b, "i-"+b)
		w.wantInstance("0", "localhost")
		if w.fake.started() != 2 {
			t.Errorf("starts %v", w.fake.starts)
		}
	})
}

func TestRunTakesDeadMachinesDown(t *testing.T) {
	inWorld(t, func(w *world) {
		id := w.add()
		w.wantInstance(id, "i-"+id)
		w.update(func(tx *state.Tx) error { return tx.DestroyMachine(id) })
		w.wantInstance(id, "i-"+id) // its agent has not said good-bye
		w.update(func(tx *state.Tx) error { return tx.SetMachineDead(id) })
		if m, err := w.machine(id); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("machine %+v, error %v", m, err)
		}
		if len(w.fake.instances) != 0 {
			t.Errorf("instances %v", w.fake.instances)
		}
	})
}

func TestRunRestartsWhatCrashed(t *testing.T) {
	inWorld(t, func(w *world) {
		id := w.add()
		w.wantInstance(id, "i-"+id)
		w.fake.mu.Lock()
		i := w.fake.instances["i-"+id]
		i.Running = false
		w.fake.instances["i-"+id] = i
		w.fake.mu.Unlock()
		time.Sleep(2 * interval) // it looks from time to time
		if w.fake.started() != 2 {
			t.Errorf("starts %v", w.fake.starts)
		}
	})
}

func TestRunLeavesFailedMachinesToTheOperator(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fake.fail["1"] = errors.New("no room")
		id := w.add()
		m, err := w.machine(id)
		if err != nil || m.Status != state.MachineError || m.Message != "no room" || m.InstanceID != "" {
			t.Errorf("machine %+v, error %v", m, err)
		}
		time.Sleep(time.Hour)
		if w.fake.started() != 1 {
			t.Errorf("starts %v", w.fake.starts)
		}
		w.fake.mu.Lock()
		delete(w.fake.fail, "1")
		w.fake.mu.Unlock()
		w.update(func(tx *state.Tx) error { return tx.SetMachineStatus(id, state.MachinePending, "") })
		w.wantInstance(id, "i-"+id)
	})
}

func TestRunRetriesTransientFailures(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fake.fail["1"] = fmt.Errorf("busy: %w", provider.ErrTransient)
		id := w.add()
		if m, err := w.machine(id); err != nil || m.Status != state.MachineError || m.Message == "" || m.RetryAt.IsZero() {
			t.Errorf("machine %+v, error %v", m, err)
		}
		time.Sleep(35 * time.Second) // 10 s, then 20 s
		if w.fake.started() != 3 {
			t.Errorf("starts %v", w.fake.starts)
		}
		w.fake.mu.Lock()
		delete(w.fake.fail, "1")
		w.fake.mu.Unlock()
		time.Sleep(time.Minute)
		w.wantInstance(id, "i-"+id)
		if m, _ := w.machine(id); m.Message != "" {
			t.Errorf("message %q", m.Message)
		}
	})
}

func TestRunSlowMachineHoldsUpNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fake.block = make(chan struct{})
		slow, fast := w.add(), w.add()
		w.wantInstance(fast, "i-"+fast)
		w.wantInstance(slow, "")
		close(w.fake.block)
		w.wantInstance(slow, "i-"+slow)
	})
}

func TestRunStopsStrays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fake.mu.Lock()
		w.fake.instances["i-77"] = provider.Instance{ID: "i-77", Environment: "u", Machine: "77", Running: true}
		w.fake.mu.Unlock()
		mode := string(state.HarvestAll)
		w.update(func(tx *state.Tx) error { return tx.SetEnvironment(map[string]*string{state.HarvestMode: &mode}) })
		w.wantInstance(w.add(), "i-1")
		if _, ok := w.fake.instances["i-77"]; ok {
			t.Error("a stray instance was left")
		}
	})
}
