// Package hookapitest states what an implementation of hookapi.Hook must do
// ("Naming a relation" in docs/reference/hook-tools.md), as a suite that runs over any of
// them, and holds Memory, an implementation for the tests of the tools.
//
// It promises nothing about the tools' input and output, which hookenv's own tests check.
package hookapitest

import (
	"context"
	"testing"

	"bijou/hookenv/hookapi"
)

// World is the fixture with which an Env is opened.
type World struct {
	// Units are all units of the environment. Members of relations need not be repeated here.
	Units     []string
	Relations []Relation
	// The following fields describe the local unit, whose hooks the suite runs.
	Unit                          string
	PrivateAddress, PublicAddress string
	Config                        map[string]any // nil values: unset, without default
	Leader                        bool           // it leads its service
	Bindings                      []string       // endpoints without a relation of their name
	// Action is the action that the hooks run as, or nil. Resources are files by name. Only a Memory
	// uses them.
	Action    *hookapi.Action
	Resources map[string]string
}

// Relation is one relation of a World, with its settings.
type Relation struct {
	hookapi.Relation
	// Settings are by unit. A unit that has settings but is not among any end's Units has departed.
	Settings map[string]map[string]string
	Apps     map[string]map[string]string // by service, as --app sees them
}

// Open opens an implementation's environment from a fixture. The environment ends with the test.
type Open func(t testing.TB, w World) Env

// Env is one environment, with methods that change it behind a hook's back. Its methods fail the test
// if they fail.
type Env interface {
	// Start begins a hook. The facts are complete: Members are the ones that the hook must see,
	// whatever the world contains by now. Hooks of several units run in parallel, but never two of one
	// unit.
	Start(facts hookapi.Facts) Running
	// Change merges changes into a node as a different process would, and commits them at once. The
	// node need not exist, but its relation must.
	Change(node hookapi.Node, changes map[string]*string)
	// Leave removes a unit from a relation. Its settings stay.
	Leave(relation int, unit string)
	// Join adds a unit to a relation of which its service is an end.
	Join(relation int, unit string, settings map[string]string)
	// RemoveRelation removes a relation for good.
	RemoveRelation(relation int)
	// Version returns a number that grows with each committed change of a node.
	Version(node hookapi.Node) int64
	// Lead makes a unit the leader of its service in place of the current one; "" means none.
	Lead(service, unit string)
}

// Running is a hook that runs.
type Running interface {
	hookapi.Hook
	// Commit ends the hook with success. Its writes become visible in one step.
	Commit(ctx context.Context) error
	// Abort ends the hook with failure. Its writes are dropped.
	Abort()
}
