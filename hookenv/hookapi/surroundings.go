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

// Goals are which units the local unit's service has or is to have, and whom it
// is related to.
type Goals struct {
	Units     map[string]Goal            // of the service, by name
	Relations map[string]map[string]Goal // by relation name; services and units of the other end
}

// Goal is how far a unit or relation has come.
type Goal struct {
	Status string // a unit's workload status, "dying"; of a relation "joining", "joined", "suspended"
	Since  time.Time
}
