package hookapi

import (
	"context"
	"time"
)

// Surroundings answers what concerns the local unit's network, its future
// neighbours and its machine.
type Surroundings interface {
	// Network describes what an endpoint of the local unit's charm is bound to,
	// as the other end of a relation sees it (NoRelation: any). ErrUnknownBinding.
	Network(ctx context.Context, binding string, relation int) (Network, error)
	// Goals returns the units and relations that the model is to have.
	Goals(ctx context.Context) (Goals, error)
	// SetVersion records the version of the workload that the unit runs, at once.
	SetVersion(ctx context.Context, version string) error
	// Reboot asks for the machine's reboot after the hook's success; with now at
	// once: the hook ends by it, and is run again afterwards. Its error says why
	// the machine is not to be rebooted.
	Reboot(ctx context.Context, now bool) error
	// Bindings returns the names of the charm's endpoints, sorted.
	Bindings(ctx context.Context) ([]string, error)
}

// Network describes the addresses of an endpoint.
type Network struct {
	Interfaces []Interface // that the unit listens on
	Ingress    []string    // addresses that others reach it by, best first
	Egress     []string    // networks (CIDR) that it reaches others from
}

// Interface is a network interface with its addresses.
type Interface struct {
	Name, MAC string
	Addresses []Address
}

// Address is an address of an interface; Network is a CIDR, or empty.
type Address struct {
	Hostname, Value, Network string
}

// Goals are which units the local unit's service has or is to have, and whom it is related to.
type Goals struct {
	Units     map[string]Goal            // of the service, by name
	Relations map[string]map[string]Goal // by relation name; services and units of the other end
}

// Goal is how far a unit or relation has come.
type Goal struct {
	Status string // a unit's workload status, "dying"; of a relation "joining", "joined", "suspended"
	Since  time.Time
}

// Leadership answers whether the local unit leads its service, and holds what the leader tells its
// peers. Of a service's units one leads at a time, as long as its agent lives.
//
// What only a leader may write is fixed with the hook's success, on condition
// that it leads still; the hook of a leader that was deposed meanwhile fails.
type Leadership interface {
	// IsLeader reports whether the local unit leads its service. It is read at the
	// first call and then fixed.
	IsLeader(ctx context.Context) (bool, error)
	// LeaderSettings returns a copy of the service's leader settings, own writes
	// applied. They are read whole at their first use and then fixed.
	LeaderSettings(ctx context.Context) (map[string]string, error)
	// SetLeaderSettings merges changes into them; a nil value deletes its key.
	// ErrNotLeader, also if there is no change.
	SetLeaderSettings(ctx context.Context, changes map[string]*string) error
}

// UnitState holds what a unit notes for itself: nobody else reads it, it outlives hooks
// and agents, and goes with the unit.
type UnitState interface {
	// State returns a copy of all of it, own writes applied.
	State(ctx context.Context) (map[string]string, error)
	// SetState merges changes into it, with the hook's success; a nil value deletes its key.
	SetState(ctx context.Context, changes map[string]*string) error
}

// Action is an action that an operator has asked for and that runs as a hook.
type Action struct {
	ID         string
	Name       string
	Parameters map[string]any // with the defaults of the charm's schema
}

// Actions answers the tools of a running action. All but Action fail with
// ErrNoAction in any other hook.
type Actions interface {
	// Action returns the action that runs. ErrNoAction.
	Action(ctx context.Context) (Action, error)
	// SetResults merges results into those that the action returns: dictionaries
	// key by key, everything else replaced.
	SetResults(ctx context.Context, results map[string]any) error
	// FailAction makes the action fail with a message, whatever its exit code;
	// the last message counts.
	FailAction(ctx context.Context, message string) error
	// LogAction reports progress at once to the operator who waits.
	LogAction(ctx context.Context, message string) error
}

// Storage is a folder that the charm has asked for.
type Storage struct {
	ID       string // "data/0"
	Location string // its path
}

// Storages answers what storage the unit has.
type Storages interface {
	// Storages lists it by name and number. It is read at its first use and then fixed.
	Storages(ctx context.Context) ([]Storage, error)
	// AddStorage gives the unit so many more of each storage of its charm, with the hook's success:
	// all, or none, and the error says why.
	AddStorage(ctx context.Context, counts map[string]int) error
}

// Resources answers where the charm's resources lie.
type Resources interface {
	// Resource returns the absolute path of a resource's file, fetched and verified.
	// ErrUnknownResource.
	Resource(ctx context.Context, name string) (path string, err error)
}
