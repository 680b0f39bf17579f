package providers

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/multicall/home"
	"bijou/provision/nspawn"
	"bijou/provision/provider"
	"bijou/state"
	"bijou/state/keys"
	"bijou/testscripts/kit/statetest"
)

// restartingProvider is a provider whose instances run again after Stop, for a number of times.
type restartingProvider struct {
	provider.Provider
	mu      sync.Mutex
	again   int
	listed  []provider.Instance
	stopped []string
}

func (r *restartingProvider) Start(context.Context, provider.Spec, io.Writer) (provider.Instance, error) {
	panic("nothing is started here")
}

func (r *restartingProvider) Instances(context.Context) ([]provider.Instance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.listed), nil
}

func (r *restartingProvider) Stop(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = append(r.stopped, id)
	if r.again > 0 {
		r.again--
		return nil
	}
	r.listed = slices.DeleteFunc(r.listed, func(i provider.Instance) bool { return i.ID == id })
	return nil
}

// TestStopAll checks that all instances of the environment are stopped until none is left, and that no others
// are stopped.
func TestStopAll(t *testing.T) {
	for name, c := range map[string]struct {
		again   int
		stopped []string
		fails   bool
	}{
		"at once":       {stopped: []string{"a"}},
		"started again": {again: 3, stopped: []string{"a", "a", "a", "a"}},
		"for ever":      {again: 1000, stopped: []string{"a", "a", "a", "a", "a"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &restartingProvider{again: c.again, listed: []provider.Instance{
				{ID: "a", Machine: "1", Environment: "ours"}, {ID: "b", Machine: "1", Environment: "theirs"}, {Machine: "2", Environment: "ours"},
			}}
			ignored := func(state.Steps) {}
			if err := stopInstances(t.Context(), p, "ours", ignored); (err != nil) != c.fails {
				t.Errorf("fails: %v, want %v: %v", err != nil, c.fails, err)
			}
			if diff := cmp.Diff(c.stopped, p.stopped); diff != "" {
				t.Errorf("stopped (-want +got):\n%s", diff)
			}
		})
	}
}

// slowProvider is a provider whose instances stop one by one, when the test allows it.
type slowProvider struct {
	provider.Provider
	mayStop chan struct{}
}

func (s *slowProvider) Stop(context.Context, string) error {
	<-s.mayStop
	return nil
}

// TestStopsAreReported checks that each stop is reported. Reports must continue while no instance stops, so
// that a progress bar appears.
func TestStopsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 20
		p := &slowProvider{mayStop: make(chan struct{})}
		var all []provider.Instance
		for n := range total {
			all = append(all, provider.Instance{ID: fmt.Sprint(n)})
		}

		go func() {
			for range total {
				time.Sleep(progressInterval * 5 / 2)
				p.mayStop <- struct{}{}
			}
		}()

		reports := map[int]int{}
		last := -1
		err := stopConcurrently(t.Context(), p, all, func(s state.Steps) {
			if s.What != "instances stopped" || s.Total != total || s.Done < last {
				t.Errorf("reported %+v after %d", s, last)
			}
			last = s.Done
			reports[s.Done]++
		})
		if err != nil {
			t.Fatal(err)
		}

		for done := range total {
			if reports[done] < 3 {
				t.Errorf("%d of %d reported %d times, want at least 3", done, total, reports[done])
			}
		}
		if reports[total] != 1 {
			t.Errorf("the end is reported %d times, want once", reports[total])
		}
	})
}

// TestWantedWithoutRecord checks that a builtin provider gets the environment's UUID even if the state opens, but its
// record of the environment is missing or damaged. A plugin gets an error.
func TestWantedWithoutRecord(t *testing.T) {
	for name, damage := range map[string]func(tx *state.Tx) error{
		"missing": func(tx *state.Tx) error {
			tx.Keys().Remove(keys.Environment)
			return nil
		},
		"does not decode": func(tx *state.Tx) error { return tx.Keys().Put(keys.Environment, "no record") },
		"empty":           func(tx *state.Tx) error { return tx.Keys().Put(keys.Environment, struct{}{}) },
	} {
		t.Run(name, func(t *testing.T) {
			st, url := statetest.SQLite(t)
			statetest.Update(t, st, damage)
			own := statetest.Environment()
			e := home.Environment{Dir: t.TempDir(), Record: home.Record{Name: own.Name, UUID: own.UUID, State: url}}

			e.Provider = nspawn.Name
			w, err := readWanted(t.Context(), e)
			if err != nil || w.Environment.UUID != own.UUID || w.Environment.Name != own.Name {
				t.Errorf("builtin: %+v, %v", w.Environment, err)
			}

			e.Provider = "sample"
			if w, err := readWanted(t.Context(), e); err == nil {
				t.Errorf("plugin: %+v", w.Environment)
			}
		})
	}
}

// TestWantedOfState checks that a builtin provider gets its settings from the state.
func TestWantedOfState(t *testing.T) {
	st, url := statetest.SQLite(t)
	own := statetest.Environment()
	own.Provider = nspawn.Name
	own.Config = map[string]string{nspawn.Name + ".network": "host"}
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.Keys().Put(keys.Environment, own) })

	e := home.Environment{Dir: t.TempDir(), Record: home.Record{
		Name: own.Name, UUID: own.UUID, State: url, Provider: nspawn.Name,
	}}
	w, err := readWanted(t.Context(), e)
	if err != nil || w.Environment.UUID != own.UUID || w.Environment.Config["network"] != "host" {
		t.Errorf("%+v, %v", w.Environment, err)
	}
}
