// Package hookapitest states what an implementation of hookapi.Hook must do
// ("Naming a relation" in docs/reference/hook-tools.md), as a suite that runs over any of
// them, and holds Memory, an implementation for the tests of the tools.
//
// It promises nothing about how the tools read or print; that is hookenv's own
// test. Only tests import it.
package hookapitest

import (
	"context"
	"testing"

	"bijou/hookenv/hookapi"
)

// World is the fixture that an Env is opened with.
type World struct {
	// Units are all units of the environment. Members of relations need not be
	// repeated here.
	Units     []string
	Relations []Relation
	// The following belong to the local unit, whose hooks the suite runs.
	Unit                          string
	PrivateAddress, PublicAddress string
	Config                        map[string]any // nil values: unset, without default
	Leader                        bool           // it leads its service
	Bindings                      []string       // endpoints that no relation is named after
	// Action is what its hooks run as, nil for none, and Resources are files by
	// name; of a Memory only.
	Action    *hookapi.Action
	Resources map[string]string
}

// Relation is one relation of a World, with its settings.
type Relation struct {
	hookapi.Relation
	// Settings are by unit. A unit that has some but is in no end's Units has
	// departed.
	Settings map[string]map[string]string
	Apps     map[string]map[string]string // by service, as --app sees them
}

// Open makes an implementation's environment of a fixture. It ends with the test.
type Open func(t testing.TB, w World) Env

// Env is one environment, and the ways to change it behind a hook's back.
// Its methods fail the test on trouble of their own.
type Env interface {
	// Start begins a hook. The facts are complete: Members are those that the
	// hook is to see, whatever the world says by now. Hooks of several units
	// run beside each other; of one unit never more than one.
	Start(facts hookapi.Facts) Running
	// Change merges changes into a node as another process would, committed at
	// once. The node need not exist, its relation does.
	Change(node hookapi.Node, changes map[string]*string)
	// Leave takes a unit out of a relation; its settings stay.
	Leave(relation int, unit string)
	// Join puts a unit into a relation whose service is an end of it.
	Join(relation int, unit string, settings map[string]string)
	// RemoveRelation removes a relation for good.
	RemoveRelation(relation int)
	// Version is a number that grows with each committed change of a node.
	Version(node hookapi.Node) int64
	// Lead makes a unit the leader of its service, in place of who is; "" for none.
	Lead(service, unit string)
}

// Running is one hook that runs.
type Running interface {
	hookapi.Hook
	// Commit ends the hook with success: its writes become visible in one step.
	Commit(ctx context.Context) error
	// Abort ends the hook with failure: its writes are dropped.
	Abort()
}
