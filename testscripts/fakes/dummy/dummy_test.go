package dummy

import (
	"context"
	"errors"
	"io"
	"testing"

	"bijou/provision/provider"
	"bijou/testscripts/conformance/providertest"
)

func TestProvider(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.Fixture {
		p := New(t.TempDir())
		return providertest.Fixture{Provider: p, Crash: func(t *testing.T, instance string) {
			if err := p.End(instance); err != nil {
				t.Fatal(err)
			}
		}}
	})
}

// TestTwoProcessesShareInstances checks that one process finds the instances that another has started.
func TestTwoProcessesShareInstances(t *testing.T) {
	dir := t.TempDir()
	spec := provider.Spec{Environment: "e", Machine: "1", Token: "e-1"}
	a, b := New(dir), New(dir)
	for range 2 {
		for _, p := range []*Provider{a, b} {
			if i, err := p.Start(t.Context(), spec, io.Discard); err != nil || i.ID != "dummy-1-1" {
				t.Fatalf("instance %+v, error %v", i, err)
			}
		}
	}
	if starts, err := b.Starts(); err != nil || starts["e-1"] != 1 {
		t.Errorf("starts %v, error %v", starts, err)
	}
}

// TestOrders checks that the provider obeys its orders.
func TestOrders(t *testing.T) {
	dir := t.TempDir()
	orders := Orders{
		Start: map[string]StartOrder{
			"1": {Fail: "no room"}, "2": {Busy: "later"}, "3": {Hang: true}, "4": {Crash: 1}, "5": {Answer: &provider.Instance{ID: "lie"}},
		},
		List: ListOrder{Omit: []string{"dummy-4-1"}, Add: []provider.Instance{{ID: "stray"}}},
	}
	if err := Give(dir, orders); err != nil {
		t.Fatal(err)
	}
	p := New(dir)
	died := 0
	p.die = func() { died++ }
	start := func(ctx context.Context, machine string) (string, error) {
		i, err := p.Start(ctx, provider.Spec{Environment: "e", Machine: machine, Token: machine}, io.Discard)
		return i.ID, err
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := start(t.Context(), "1"); err == nil || err.Error() != "no room" {
		t.Error(err)
	}
	if _, err := start(t.Context(), "2"); !errors.Is(err, provider.ErrTransient) {
		t.Error(err)
	}
	if _, err := start(ended, "3"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for range 2 {
		if id, err := start(t.Context(), "4"); id != "dummy-4-1" || err != nil || died != 1 {
			t.Errorf("instance %q, error %v, died %d times", id, err, died)
		}
	}
	if id, err := start(t.Context(), "5"); id != "lie" || err != nil {
		t.Errorf("instance %q, error %v", id, err)
	}
	have, err := p.Instances(t.Context())
	if err != nil || len(have) != 2 || have[0].ID != "dummy-5-1" || have[1].ID != "stray" {
		t.Errorf("instances %+v, error %v", have, err)
	}
}
