// Package providertest states what a provider must do. Anything that it does not state is not required.
package providertest

import (
	"cmp"
	"context"
	"io"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"bijou/provision/provider"
)

// Fixture is one provider under test, without instances.
type Fixture struct {
	Provider provider.Provider
	// Series is a series that the provider supports for its machines. If empty, it supports any series.
	Series string
	// Crash ends the instance without the provider's knowledge.
	Crash func(t *testing.T, instance string)
}

// testCase checks one promise.
type testCase struct {
	name string
	run  func(ctx context.Context, t *testing.T, f Fixture)
}

// Run checks every promise, each with its own fixture.
func Run(t *testing.T, fixture func(t *testing.T) Fixture) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c.run(ctx, t, fixture(t))
		})
	}
}

func cases() []testCase {
	return []testCase{
		{"started instances are listed", startLists},
		{"a start is idempotent on its token", startTwice},
		{"two starts at once make one instance", startAtOnce},
		{"a stopped instance is gone", stopRemoves},
		{"a stop is idempotent", stopTwice},
		{"an instance that ended does not run", crashShows},
		{"an instance that ended is started again", crashRestarts},
		{"what an ended instance left can be stopped", crashStops},
	}
}

func (f Fixture) spec(machine string) provider.Spec {
	return provider.Spec{Environment: "e0a1", Machine: machine, Series: cmp.Or(f.Series, "noble"), Token: "e0a1-" + machine}
}

func start(ctx context.Context, t *testing.T, f Fixture, machine string) provider.Instance {
	t.Helper()
	begun := time.Now()
	i, err := f.Provider.Start(ctx, f.spec(machine), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	// docs/dev/performance.md quotes these times.
	t.Logf("a start of machine %s took %.2fs", machine, time.Since(begun).Seconds())
	t.Cleanup(func() { _ = f.Provider.Stop(context.WithoutCancel(ctx), i.ID) })
	return i
}

func stop(ctx context.Context, t *testing.T, f Fixture, id string) {
	t.Helper()
	if err := f.Provider.Stop(ctx, id); err != nil {
		t.Fatal(err)
	}
}

func wantInstances(ctx context.Context, t *testing.T, f Fixture, want ...provider.Instance) {
	t.Helper()
	got, err := f.Provider.Instances(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func startLists(ctx context.Context, t *testing.T, f Fixture) {
	wantInstances(ctx, t, f)
	a, b := start(ctx, t, f, "1"), start(ctx, t, f, "2")
	if a.Machine != "1" || !a.Running || a.ID == "" || a.ID == b.ID {
		t.Fatalf("instances %+v, %+v", a, b)
	}
	wantInstances(ctx, t, f, a, b)
}

func startTwice(ctx context.Context, t *testing.T, f Fixture) {
	a, b := start(ctx, t, f, "1"), start(ctx, t, f, "1")
	if diff := gocmp.Diff(a, b); diff != "" {
		t.Fatal(diff)
	}
	wantInstances(ctx, t, f, a)
}

func startAtOnce(ctx context.Context, t *testing.T, f Fixture) {
	errs := make(chan error, 2) // one slot for each start
	for range 2 {
		go func() {
			_, err := f.Provider.Start(ctx, f.spec("1"), io.Discard)
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	wantInstances(ctx, t, f, start(ctx, t, f, "1"))
}

func stopRemoves(ctx context.Context, t *testing.T, f Fixture) {
	a, b := start(ctx, t, f, "1"), start(ctx, t, f, "2")
	stop(ctx, t, f, a.ID)
	wantInstances(ctx, t, f, b)
}

func stopTwice(ctx context.Context, t *testing.T, f Fixture) {
	a := start(ctx, t, f, "1")
	stop(ctx, t, f, a.ID)
	stop(ctx, t, f, a.ID)
}

func crashShows(ctx context.Context, t *testing.T, f Fixture) {
	a := start(ctx, t, f, "1")
	f.Crash(t, a.ID)
	a.Running = false
	wantInstances(ctx, t, f, a)
}

func crashRestarts(ctx context.Context, t *testing.T, f Fixture) {
	a := start(ctx, t, f, "1")
	f.Crash(t, a.ID)
	b := start(ctx, t, f, "1")
	if diff := gocmp.Diff(a, b); diff != "" {
		t.Fatal(diff)
	}
	wantInstances(ctx, t, f, b)
}

func crashStops(ctx context.Context, t *testing.T, f Fixture) {
	a := start(ctx, t, f, "1")
	f.Crash(t, a.ID)
	stop(ctx, t, f, a.ID)
	wantInstances(ctx, t, f)
}
