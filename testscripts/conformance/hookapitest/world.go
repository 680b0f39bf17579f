// Package hookapitest is the conformance suite for implementations of hookapi.Hook. Its rules about relations
// follow "Naming a relation" in docs/reference/hook-tools.md. It also has Memory, an implementation for the
// tests of the hook tools.
//
// It does not check the input and output of the tools. The tests of package hookenv do.
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
	Config                        map[string]any // a nil value is an unset option without a default
	Leader                        bool           // whether the local unit leads its service
	Bindings                      []string       // endpoints without a relation of their name
	// Action is the action that the hooks run as, or nil. Resources contains files by name. Only a Memory
	// uses these two fields.
	Action    *hookapi.Action
	Resources map[string]string
}

// Relation is one relation of a World, with its settings.
type Relation struct {
	hookapi.Relation
	// Settings contains settings by unit. A unit that has settings but is in no end's Units has departed.
	Settings map[string]map[string]string
	Apps     map[string]map[string]string // by service, as --app sees them
}

// Open opens an implementation's environment from a fixture. The environment ends with the test.
type Open func(t testing.TB, w World) Env

// Env is one environment. Its methods change it as other processes do while a hook runs. Its methods fail the
// test if they fail.
type Env interface {
	// Start begins a hook. The facts are complete: the hook must see exactly their Members, even if the world
	// has changed. Hooks of several units run in parallel, but never two of one unit.
	Start(facts hookapi.Facts) Running
	// Change merges changes into a node as if another process had made them, and commits them at once. The
	// node need not exist, but its relation must.
	Change(node hookapi.Node, changes map[string]*string)
	// Leave removes a unit from a relation. Its settings remain.
	Leave(relation int, unit string)
	// Join adds a unit to a relation. The unit's service must be an end of the relation.
	Join(relation int, unit string, settings map[string]string)
	// RemoveRelation removes a relation, with its settings.
	RemoveRelation(relation int)
	// Version returns a number that grows with each committed change of a node.
	Version(node hookapi.Node) int64
	// Lead makes a unit the leader of its service in place of the current one; "" means none.
	Lead(service, unit string)
}

// Running is a running hook.
type Running interface {
	hookapi.Hook
	// Commit ends the hook with success. Its writes become visible in one step.
	Commit(ctx context.Context) error
	// Abort ends the hook with failure. Its writes are discarded.
	Abort()
}
