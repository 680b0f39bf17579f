package hookapitest

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/hookenv/hookapi"
)

// test checks one guarantee. Its name states the guarantee in a sentence.
type test struct {
	name string
	run  func(s suite)
}

// Run checks an implementation. Each guarantee gets its own environment.
func Run(t *testing.T, open Open) {
	for _, group := range [][]test{relationTests(), reachTests(), settingsTests(), endingTests(), unitTests(), leadershipTests(), surroundingsTests()} {
		for _, one := range group {
			t.Run(one.name, func(t *testing.T) {
				one.run(suite{T: t, env: open(t, Standard())})
			})
		}
	}
}

// suite has the helpers of a test. They fail the test on errors.
type suite struct {
	*testing.T
	env Env
}

func (s suite) ctx() context.Context { return s.Context() }

// settings reads a unit's settings in relation 0.
func (s suite) settings(h hookapi.Hook, unit string) map[string]string {
	s.Helper()
	return s.node(h, hookapi.Node{Relation: 0, Unit: unit})
}

func (s suite) node(h hookapi.Hook, n hookapi.Node) map[string]string {
	s.Helper()
	got, err := h.Settings(s.ctx(), n)
	if err != nil {
		s.Fatalf("Settings(%+v): %v", n, err)
	}
	return got
}

func (s suite) set(h hookapi.Hook, n hookapi.Node, changes map[string]*string) {
	s.Helper()
	if err := h.SetSettings(s.ctx(), n, changes); err != nil {
		s.Fatalf("SetSettings(%+v): %v", n, err)
	}
}

func (s suite) commit(r Running) {
	s.Helper()
	if err := r.Commit(s.ctx()); err != nil {
		s.Fatalf("Commit: %v", err)
	}
}

func (s suite) same(what string, want, got any) {
	s.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (s suite) fails(what string, want, got error) {
	s.Helper()
	if !errors.Is(got, want) {
		s.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// committed reads a unit's settings in relation 0 as a new hook at the other end sees them.
func (s suite) committed(unit string) map[string]string {
	s.Helper()
	stranger := s.env.Start(plain("mysql/10", "mysql"))
	defer stranger.Abort()
	return s.settings(stranger, unit)
}

// own is the local unit's node in relation 0.
var own = hookapi.Node{Relation: 0, Unit: "wordpress/0"}

// to returns the changes for pairs of keys and values. An empty value deletes its key.
func to(pairs ...string) map[string]*string {
	changes := map[string]*string{}
	for i := 0; i < len(pairs); i += 2 {
		changes[pairs[i]] = nil
		if pairs[i+1] != "" {
			changes[pairs[i]] = &pairs[i+1]
		}
	}
	return changes
}
