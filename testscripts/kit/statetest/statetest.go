// Package statetest creates environments for tests, in memory or on SQLite, with charms, services, units and
// relations.
package statetest

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/logs"
	"bijou/state/requests"
	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
)

// Environment returns the record of these environments.
func Environment() state.Environment {
	return state.Environment{
		Name: "test", UUID: "6f2b8f0e-0c59-4f6e-9a2b-1d1c3b0f7a11",
		Provider: state.ProviderLocal, DefaultSeries: "jammy",
	}
}

// New returns a new environment in memory that is closed with the test.
func New(t testing.TB) *state.State {
	t.Helper()
	return NewOf(t, Environment())
}

// NewOf is New with a different record, for example with a different provider.
func NewOf(t testing.TB, env state.Environment) *state.State {
	t.Helper()
	mem := memstore.New()
	KeepFuture(t, mem)
	st, err := state.CreateIn(t.Context(), mem, env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// Share opens an environment in memory a second time, with its own sessions, as if in another process.
func Share(st *state.State) *state.State { return state.OpenIn(memstore.Share(st.Store())) }

// ShareWrapped is Share with wrap between the environment and its store, for tests of failing stores.
func ShareWrapped(st *state.State, wrap func(store.Store) store.Store) *state.State {
	return state.OpenIn(wrap(memstore.Share(st.Store())))
}

// Abandon ends the use of an environment in memory as kill -9 ends a process: its sessions are not
// closed, but expire after their TTL.
func Abandon(st *state.State) { memstore.Abandon(st.Store()) }

// SQLite returns a new, open environment in a file below t.TempDir(), and the URL that opens it again.
func SQLite(t testing.TB) (st *state.State, url string) {
	t.Helper()
	url = "sqlite:" + filepath.Join(t.TempDir(), "state.db")
	if err := state.Create(t.Context(), url, Environment()); err != nil {
		t.Fatal(err)
	}
	return Open(t, url), url
}

// Open opens an environment until the test ends.
func Open(t testing.TB, url string) *state.State {
	t.Helper()
	st, err := state.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// Each runs a test over a new environment on each store.
func Each(t *testing.T, test func(t *testing.T, st *state.State)) {
	t.Helper()
	t.Run("mem", func(t *testing.T) { test(t, New(t)) })
	t.Run("sqlite", func(t *testing.T) {
		st, _ := SQLite(t)
		test(t, st)
	})
}

// Serve carries out the requests of agents, as the provisioner's leader would, until the test ends or
// stop is called.
func Serve(t testing.TB, st *state.State) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = requests.Run(ctx, st, st.Update, slog.New(slog.DiscardHandler))
	}()

	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

// Update is a State.Update that must succeed.
func Update(t testing.TB, st *state.State, f func(tx *state.Tx) error) {
	t.Helper()
	if err := st.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// View is a State.View that must succeed.
func View(t testing.TB, st *state.State, f func(v *state.View) error) {
	t.Helper()
	if err := st.View(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// Read returns the result of f, which must succeed.
func Read[T any](t testing.TB, st *state.State, f func(v *state.View) (T, error)) (got T) {
	t.Helper()
	View(t, st, func(v *state.View) (err error) {
		got, err = f(v)
		return err
	})
	return got
}

// Eventually waits until f returns true. Its limit is three times the time that a busy machine needs.
func Eventually(t testing.TB, st *state.State, f func(v *state.View) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	for {
		var done bool
		var revision int64
		err := st.View(ctx, func(v *state.View) (err error) {
			if done, err = f(v); err != nil {
				return err
			}
			revision, err = v.Revision()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if done {
			return
		}
		await(t, ctx, st, revision)
	}
}

// await returns after the next change.
func await(t testing.TB, ctx context.Context, st *state.State, revision int64) {
	t.Helper()
	w, err := st.Watch(ctx, revision, state.WatchAll(), logs.Watch())
	if err == nil {
		defer w.Close()
		_, err = w.Next(ctx)
	}
	if err != nil {
		t.Fatalf("it did not come to it: %v", err)
	}
}
