package hookapi

import (
	"context"
	"time"
)

// Surroundings describes the local unit's network, its service's goals and its machine.
type Surroundings interface {
	// Network describes the addresses of an endpoint of the local unit's charm. relation is a relation of that
	// endpoint, or NoRelation. It returns ErrUnknownBinding if the charm does not have the endpoint.
	Network(ctx context.Context, binding string, relation int) (Network, error)
	// Goals returns the units and relations that the local unit's service has or will have.
	Goals(ctx context.Context) (Goals, error)
	// SetVersion immediately records the version of the unit's workload.
	SetVersion(ctx context.Context, version string) error
	// Reboot reboots the machine after the hook has succeeded. If now is true, Reboot ends the hook and reboots
	// the machine at once, and the hook runs again after the reboot. Reboot returns an error if the machine
	// cannot be rebooted.
	Reboot(ctx context.Context, now bool) error
	// Bindings returns the names of the charm's endpoints, sorted.
	Bindings(ctx context.Context) ([]string, error)
}

// Network describes the addresses of an endpoint.
type Network struct {
	Interfaces []Interface // the interfaces on which the unit listens
	Ingress    []string    // the addresses at which other units reach this unit, best first
	Egress     []string    // the networks (CIDR) from which the unit reaches other units
}

// Interface is a network interface with its addresses.
type Interface struct {
	Name, MAC string
	Addresses []Address
}

// Address is an address of an interface. Network is a CIDR, or empty.
type Address struct {
	Hostname, Value, Network string
}

// Goals are the units that the local unit's service has or will have, and its relations.
type Goals struct {
	Units     map[string]Goal            // the service's units, by name
	Relations map[string]map[string]Goal // by relation name: the remote services and units, by name
}

// Goal is the progress of a unit or a relation.
type Goal struct {
	Status string // a unit's workload status or "dying"; a relation's "joining", "joined" or "dying"
	Since  time.Time
}

// Leadership reports whether the local unit leads its service. It also holds the leader settings, which the leader
// writes for its peers. One unit of a service leads at a time, as long as that unit's agent is running.
//
// Writes that only a leader can make are committed when the hook succeeds. If the unit no longer leads at
// that time, the commit is refused, and none of the hook's writes take effect.
type Leadership interface {
	// IsLeader reports whether the local unit leads its service. It reads the leader at the first call, and
	// later returns the same result.
	IsLeader(ctx context.Context) (bool, error)
	// LeaderSettings returns a copy of the service's leader settings, with the hook's own writes applied. The
	// first access to the settings reads all of them.
	LeaderSettings(ctx context.Context) (map[string]string, error)
	// SetLeaderSettings merges changes into the leader settings. A nil value deletes its key. It returns
	// ErrNotLeader unless the unit leads, even if there are no changes.
	SetLeaderSettings(ctx context.Context, changes map[string]*string) error
}

// UnitState holds key-value pairs that belong to the local unit. Other units cannot read them. They survive hooks
// and agents, and are removed with the unit.
type UnitState interface {
	// State returns a copy of all pairs, with the hook's own writes applied.
	State(ctx context.Context) (map[string]string, error)
	// SetState merges changes into the pairs when the hook succeeds. A nil value deletes its key.
	SetState(ctx context.Context, changes map[string]*string) error
}

// Action is an action that an operator has requested. It runs as a hook.
type Action struct {
	ID         string
	Name       string
	Parameters map[string]any // with the defaults of the charm's schema applied
}

// Actions has the methods for the tools of a running action. In any other hook all methods return
// ErrNoAction.
type Actions interface {
	// Action returns the running action.
	Action(ctx context.Context) (Action, error)
	// SetResults merges results into the results that the action returns. It merges dictionaries key by key, and
	// replaces all other values.
	SetResults(ctx context.Context, results map[string]any) error
	// FailAction marks the action as failed with a message, regardless of its exit code. A later message
	// replaces an earlier one.
	FailAction(ctx context.Context, message string) error
	// LogAction immediately reports progress to the operator who waits for the action.
	LogAction(ctx context.Context, message string) error
}

// Storage is a directory that the charm has declared as storage.
type Storage struct {
	ID       string // "data/0"
	Location string // the directory's path
}

// Storages reads the unit's storage, and adds storage.
type Storages interface {
	// Storages returns the unit's storage, sorted by name and number. It reads the storage at the first call,
	// and later returns the same result.
	Storages(ctx context.Context) ([]Storage, error)
	// AddStorage adds the given number of each storage to the unit when the hook succeeds. If one storage cannot be
	// added, AddStorage adds none and returns an error.
	AddStorage(ctx context.Context, counts map[string]int) error
}

// Resources gives access to the files of the charm's resources.
type Resources interface {
	// Resource returns the absolute path of a resource's file, after it has downloaded and verified the file. It
	// returns ErrUnknownResource if the charm does not have the resource, or if no file was attached for it.
	Resource(ctx context.Context, name string) (path string, err error)
}
