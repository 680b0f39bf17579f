package state

import (
	"cmp"
	"fmt"
	"slices"
)

// Port is one opened range of a unit.
type Port struct {
	From     int    `json:"from,omitempty"` // inclusive; From and To are 0 for icmp
	To       int    `json:"to,omitempty"`
	Protocol string `json:"protocol"`           // "tcp", "udp" or "icmp"
	Endpoint string `json:"endpoint,omitempty"` // a relation's name; empty: all
}

// String prints a range as the tools do: "80/tcp", "8000-8010/udp", "icmp".
func (p Port) String() string {
	switch {
	case p.Protocol == "icmp":
		return "icmp"
	case p.From == p.To:
		return fmt.Sprintf("%d/%s", p.From, p.Protocol)
	}
	return fmt.Sprintf("%d-%d/%s", p.From, p.To, p.Protocol)
}

// ComparePorts orders icmp first, then by protocol, number and endpoint.
func ComparePorts(a, b Port) int {
	rank := func(p Port) int {
		if p.Protocol == "icmp" {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Protocol, b.Protocol),
		cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Endpoint, b.Endpoint))
}

// Ports reads what a unit has open, in the order of ComparePorts.
func (v *View) Ports(unit string) ([]Port, error) {
	ports, _, err := load[[]Port](v, portsKey(unit))
	return ports, err
}

// SetPorts replaces what a unit has open. ErrNotFound if the unit is gone.
func (tx *Tx) SetPorts(unit string, ports []Port) error {
	if _, err := tx.Unit(unit); err != nil {
		return err
	}
	if len(ports) == 0 {
		tx.remove(portsKey(unit))
		return nil
	}
	sorted := slices.Clone(ports)
	slices.SortFunc(sorted, ComparePorts)
	return tx.put(portsKey(unit), slices.Compact(sorted))
}
