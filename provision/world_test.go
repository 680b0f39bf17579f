package provision

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/provision/provider"
	"bijou/state"
	"bijou/testscripts/fakes/dummy"
	"bijou/testscripts/fakes/memstore"
)

// world is an environment with a running provisioner.
type world struct {
	t     *testing.T
	state *state.State
	dummy *dummy.Provider
	dir   string // the dummy's directory
	calls *calls
}

// calls is a provider that passes all calls to another provider and counts them.
type calls struct {
	provider.Provider
	mu     sync.Mutex
	starts []string // the machines of starts
	specs  []provider.Spec
	stops  []string // the instances of stops
	looks  int
}

func (c *calls) Start(ctx context.Context, s provider.Spec, boot io.Writer) (provider.Instance, error) {
	c.mu.Lock()
	c.starts, c.specs = append(c.starts, s.Machine), append(c.specs, s)
	c.mu.Unlock()
	return c.Provider.Start(ctx, s, boot)
}

func (c *calls) Stop(ctx context.Context, id string) error {
	c.mu.Lock()
	c.stops = append(c.stops, id)
	c.mu.Unlock()
	return c.Provider.Stop(ctx, id)
}

func (c *calls) Instances(ctx context.Context) ([]provider.Instance, error) {
	c.mu.Lock()
	c.looks++
	c.mu.Unlock()
	return c.Provider.Instances(ctx)
}

// inWorld runs the test in a synctest bubble with its own clock.
func inWorld(t *testing.T, test func(w *world)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		st, err := state.CreateIn(t.Context(), memstore.New(), state.Environment{Name: "e", UUID: "u", Provider: dummy.Name, DefaultSeries: "noble"})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, state: st, dummy: dummy.New(dir), dir: dir}
		w.calls = &calls{Provider: w.dummy}
		end := w.provision()
		test(w)
		end()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}

// provision runs a provisioner until end is called.
func (w *world) provision() (end func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var run sync.WaitGroup
	run.Go(func() {
		if err := Run(ctx, Options{State: w.state, Provider: w.calls, Log: slog.New(slog.DiscardHandler)}); err != nil {
			w.t.Error(err)
		}
	})
	return func() {
		cancel()
		run.Wait()
	}
}

func (w *world) update(f func(tx *state.Tx) error) {
	w.t.Helper()
	if err := w.state.Update(w.t.Context(), f); err != nil {
		w.t.Fatal(err)
	}
}

// order sets the provider's orders.
func (w *world) order(o dummy.Orders) {
	w.t.Helper()
	if err := dummy.Give(w.dir, o); err != nil {
		w.t.Fatal(err)
	}
}

// startOrder returns orders for the start of machine 1.
func startOrder(o dummy.StartOrder) dummy.Orders {
	return dummy.Orders{Start: map[string]dummy.StartOrder{"1": o}}
}

// harvest sets the harvest mode.
func (w *world) harvest(h state.Harvest) {
	w.t.Helper()
	mode := string(h)
	w.update(func(tx *state.Tx) error { return tx.SetEnvironment(map[string]*string{state.HarvestMode: &mode}) })
}

// add adds a machine and returns its id.
func (w *world) add() (id string) {
	w.t.Helper()
	w.update(func(tx *state.Tx) error {
		m, err := tx.AddMachine(state.Machine{})
		id = m.ID
		return err
	})
	return id
}

// machine waits until the provisioner has nothing to do, and reads a machine.
func (w *world) machine(id string) (m state.Machine, err error) {
	w.settle(time.Second)
	err = w.state.View(w.t.Context(), func(v *state.View) error {
		m, err = v.Machine(id)
		return err
	})
	return m, err
}

// settle waits for some time by the clock of the synctest bubble.
func (w *world) settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) wantInstance(id, instance string) {
	w.t.Helper()
	if m, err := w.machine(id); err != nil || m.InstanceID != instance {
		w.t.Errorf("machine %s has instance %q, error %v; want %q", id, m.InstanceID, err, instance)
	}
}

// wantGone checks that a machine is removed.
func (w *world) wantGone(id string) {
	w.t.Helper()
	if m, err := w.machine(id); !errors.Is(err, state.ErrNotFound) {
		w.t.Errorf("machine %+v, error %v", m, err)
	}
}

// wantInstances waits a second, and until the provisioner has nothing to do. Then the provider must have exactly
// these instances and must not have created any of them twice.
func (w *world) wantInstances(ids ...string) {
	w.t.Helper()
	w.settle(time.Second)
	have, err := w.dummy.All()
	if err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, i := range have {
		got = append(got, i.ID)
	}
	slices.Sort(got)
	if diff := cmp.Diff(ids, got); diff != "" {
		w.t.Error(diff)
	}
	starts, err := w.dummy.Starts()
	for token, n := range starts {
		if n != 1 || err != nil {
			w.t.Errorf("%d instances were made for token %s, error %v", n, token, err)
		}
	}
}

// wantStarts checks the number of calls of the provider's Start.
func (w *world) wantStarts(n int) {
	w.t.Helper()
	w.calls.mu.Lock()
	defer w.calls.mu.Unlock()
	if len(w.calls.starts) != n {
		w.t.Errorf("asked %d times to start: %v; want %d", len(w.calls.starts), w.calls.starts, n)
	}
}
