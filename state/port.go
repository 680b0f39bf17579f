package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Port is a range of ports that a unit has open.
type Port struct {
	From     int    `json:"from,omitempty"` // inclusive; From and To are 0 for icmp
	To       int    `json:"to,omitempty"`
	Protocol string `json:"protocol"`           // "tcp", "udp" or "icmp"
	Endpoint string `json:"endpoint,omitempty"` // a relation's name; empty means all endpoints
}

// String returns a range in the form of the hook tools: "80/tcp", "8000-8010/udp", "icmp".
func (p Port) String() string {
	switch {
	case p.Protocol == "icmp":
		return "icmp"
	case p.From == p.To:
		return fmt.Sprintf("%d/%s", p.From, p.Protocol)
	}

	return fmt.Sprintf("%d-%d/%s", p.From, p.To, p.Protocol)
}

// ComparePorts orders ranges by protocol, with icmp first, then by their numbers, and then by endpoint.
func ComparePorts(a, b Port) int {
	rank := func(p Port) int {
		if p.Protocol == "icmp" {
			return 0
		}
		return 1
	}

	byRank := cmp.Compare(rank(a), rank(b))
	return cmp.Or(byRank, cmp.Compare(a.Protocol, b.Protocol),
		cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Endpoint, b.Endpoint))
}

// Ports reads the open ports of a unit, in the order of ComparePorts.
func (v *View) Ports(unit string) ([]Port, error) {
	return keyspace.LoadOrZero[[]Port](v.keys, keys.Ports(unit))
}

// SetPorts replaces the open ports of a unit. It returns ErrNotFound if the unit is gone.
func (tx *Tx) SetPorts(unit string, ports []Port) error {
	if _, err := tx.Unit(unit); err != nil {
		return err
	}
	// Put keeps the unknown fields of a record only if the transaction has read the record.
	if _, _, err := tx.keys.Get(keys.Ports(unit)); err != nil {
		return err
	}

	sorted := slices.SortedFunc(slices.Values(ports), ComparePorts)
	return tx.keys.PutOrRemove(keys.Ports(unit), slices.Compact(sorted), len(ports) > 0)
}

// overlaps reports whether two ranges share a port. Ranges of icmp never overlap, since all units can answer
// pings.
func (p Port) overlaps(other Port) bool {
	if p.Protocol != other.Protocol || p.Protocol == "icmp" {
		return false
	}
	return p.From <= other.To && other.From <= p.To
}

// isSameRange compares the ranges without their endpoints.
func (p Port) isSameRange(other Port) bool {
	p.Endpoint = ""
	other.Endpoint = ""
	return p == other
}

// ConflictsWith reports whether one unit cannot have both ranges open: they overlap, but are not equal. A unit
// can have equal ranges open for several endpoints.
func (p Port) ConflictsWith(other Port) bool { return p.overlaps(other) && !p.isSameRange(other) }

// PortInUse is an open range and the unit that has it.
type PortInUse struct {
	Unit string
	Port Port
}

// PortConflict finds a range that overlaps p, and that a different unit on the unit's machine has open; found
// is false if there is no such range. Use [Port.ConflictsWith] for the unit's own ranges. On "local", an equal
// range does not conflict: all units share one host, and many charms open the same ports.
func (v *View) PortConflict(unit string, p Port) (conflict PortInUse, found bool, err error) {
	u, err := v.Unit(unit)
	if err != nil {
		return PortInUse{}, false, err
	}
	env, err := v.Environment()
	if err != nil {
		return PortInUse{}, false, err
	}
	open, err := v.machinePorts(u.Machine)
	if err != nil {
		return PortInUse{}, false, err
	}

	for _, other := range open {
		shared := env.Provider == ProviderLocal && other.Port.isSameRange(p)
		if other.Unit != unit && other.Port.overlaps(p) && !shared {
			return other, true, nil
		}
	}

	return PortInUse{}, false, nil
}

// machinePorts returns the open ports of all units of a machine.
func (v *View) machinePorts(machine string) (open []PortInUse, err error) {
	units, err := v.MachineUnits(machine)
	if err != nil {
		return nil, err
	}

	here := map[string]bool{}
	services := map[string]bool{}
	for _, unit := range units {
		service, _, _ := strings.Cut(unit, "/")
		here[unit] = true
		services[service] = true
	}

	for _, service := range slices.Sorted(maps.Keys(services)) {
		// Read one list per service, not one key per unit: with the provider local, one machine can have
		// hundreds of units of a service. This costs more for a service that is spread over many machines,
		// since the list also has the units on other machines.
		kvs, err := v.keys.List(keys.ServiceUnits(service))
		if err != nil {
			return nil, err
		}

		for _, kv := range kvs {
			unit, ok := strings.CutSuffix(kv.Key[len(keys.Units):], "/ports")
			if !ok || !here[unit] {
				continue
			}
			ports, err := keyspace.Decode[[]Port](kv)
			if v.keys.Skips(err) {
				// A damaged record of one unit must not stop other units.
				continue
			}
			if err != nil {
				return nil, err
			}

			for _, p := range ports {
				open = append(open, PortInUse{unit, p})
			}
		}
	}

	return open, nil
}
