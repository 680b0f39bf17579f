package hookctx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// Address returns the local unit's public or private address. It returns an empty string if the unit has no
// such address.
func (c *Context) Address(ctx context.Context, public bool) (string, error) {
	return answer(ctx, c, func() (string, error) {
		unit, err := c.localUnit("") // the hook's own unit
		if err != nil {
			return "", err
		}
		return view(ctx, c, func(v *state.View) (string, error) { return v.UnitAddress(unit, public) })
	})
}

// Bindings returns the names of the charm's endpoints, sorted.
func (c *Context) Bindings(ctx context.Context) ([]string, error) {
	return answer(ctx, c, func() ([]string, error) { return c.readBindings(ctx) })
}

// readBindings reads the names for Bindings. The caller holds c.mu.
func (c *Context) readBindings(ctx context.Context) ([]string, error) {
	return view(ctx, c, func(v *state.View) ([]string, error) {
		return v.Bindings(c.opts.Facts.Service, c.opts.CharmURL)
	})
}

// Network describes the addresses of an endpoint. All endpoints of a unit have the unit's private address.
// Network returns [hookapi.ErrUnknownBinding] if the charm does not have the endpoint. Unless relation is
// NoRelation, it also returns an error if the hook cannot reach the relation.
func (c *Context) Network(ctx context.Context, binding string, relation int) (hookapi.Network, error) {
	return answer(ctx, c, func() (hookapi.Network, error) {
		unit, err := c.localUnit("") // the hook's own unit
		if err != nil {
			return hookapi.Network{}, err
		}

		names, err := c.readBindings(ctx)
		if err != nil {
			return hookapi.Network{}, err
		}
		if !slices.Contains(names, binding) {
			return hookapi.Network{}, fmt.Errorf("%q: %w", binding, hookapi.ErrUnknownBinding)
		}

		if relation != hookapi.NoRelation {
			if _, err := c.loadOwnRelation(ctx, relation); err != nil {
				return hookapi.Network{}, err
			}
		}

		const public = false
		address, err := view(ctx, c, func(v *state.View) (string, error) { return v.UnitAddress(unit, public) })
		if err != nil {
			return hookapi.Network{}, err
		}

		return describeNetwork(ctx, address)
	})
}

// describeNetwork returns the network of a unit's address, with the network interface of this host that has the
// address. If no interface has it, the interface's name, MAC and network are empty. If the address is a host name,
// describeNetwork resolves the name. A name that it cannot resolve stays as it is. describeNetwork returns an error
// if the address is empty.
func describeNetwork(ctx context.Context, address string) (hookapi.Network, error) {
	if address == "" {
		return hookapi.Network{}, errors.New("the unit has no address yet")
	}

	at := hookapi.Address{Value: address}
	if net.ParseIP(address) == nil {
		if found := resolveHost(ctx, address); found != "" {
			at = hookapi.Address{Hostname: address, Value: found}
		}
	}

	iface := findInterface(at.Value)
	at.Network = iface.network
	n := hookapi.Network{
		Interfaces: []hookapi.Interface{{Name: iface.name, MAC: iface.mac, Addresses: []hookapi.Address{at}}},
		Ingress:    []string{at.Value},
	}

	// The unit's traffic to other hosts comes from its own address.
	if ip := net.ParseIP(at.Value); ip != nil {
		n.Egress = []string{HostSubnet(ip.String())}
	}
	return n, nil
}

// resolveHost returns the first address of the named host that is not a loopback address. If all addresses are
// loopback addresses, it returns the first one. If it cannot resolve the name, it returns an empty string.
func resolveHost(ctx context.Context, host string) string {
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil || len(found) == 0 {
		return ""
	}

	i := slices.IndexFunc(found, func(a string) bool { return !net.ParseIP(a).IsLoopback() })
	if i < 0 {
		return found[0]
	}
	return found[i]
}

// HostSubnet returns the subnet that contains only this address, in CIDR notation. If the address is a host
// name, HostSubnet returns the name.
func HostSubnet(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	return netip.PrefixFrom(ip, ip.BitLen()).String()
}

// hostInterface is a network interface of this host. network is a CIDR.
type hostInterface struct{ name, mac, network string }

// findInterface returns the network interface of this host that has the address. It returns the zero value if
// no interface has the address.
func findInterface(address string) hostInterface {
	ip := net.ParseIP(address)
	interfaces, _ := net.Interfaces() // no interfaces after an error
	for _, i := range interfaces {
		addresses, _ := i.Addrs() // no addresses after an error
		for _, a := range addresses {
			n, ok := a.(*net.IPNet)
			if ok && n.IP.Equal(ip) {
				network := net.IPNet{IP: n.IP.Mask(n.Mask), Mask: n.Mask}
				return hostInterface{name: i.Name, mac: i.HardwareAddr.String(), network: network.String()}
			}
		}
	}

	return hostInterface{}
}

// unitPorts holds a unit's open ports as they were read, and the hook's changes.
type unitPorts struct {
	stored  []state.Port
	changes []PortChange
}

// SetPort opens or closes a range of ports of the unit, or of the local unit if unit is empty. The change takes
// effect when the hook succeeds. SetPort returns a [hookapi.PortConflict] if p conflicts with an open range of
// the unit or, when it opens p, of another unit on the machine. When it closes p, a range that the hook itself has
// opened does not count.
func (c *Context) SetPort(ctx context.Context, unit string, p hookapi.Port, open bool) error {
	return c.do(ctx, func() error {
		unit, err := c.localUnit(unit)
		if err != nil {
			return err
		}
		ports, err := c.loadPorts(ctx, unit)
		if err != nil {
			return err
		}

		own := ports.apply(ports.stored)
		if open {
			err = c.checkPortConflict(ctx, unit, own, p)
		} else {
			err = c.checkClosing(unit, ports.stored, own, p)
		}
		if err != nil {
			return err
		}

		ports.changes = append(ports.changes, PortChange{Unit: unit, Port: state.Port(p), Open: open})
		return nil
	})
}

// Ports returns the ports that the local unit has open, with the hook's own changes applied.
func (c *Context) Ports(ctx context.Context) ([]hookapi.Port, error) {
	return answer(ctx, c, func() ([]hookapi.Port, error) {
		unit, err := c.localUnit("") // the hook's own unit
		if err != nil {
			return nil, err
		}
		ports, err := c.loadPorts(ctx, unit)
		if err != nil {
			return nil, err
		}

		var open []hookapi.Port
		for _, p := range ports.apply(ports.stored) {
			open = append(open, hookapi.Port(p))
		}
		return open, nil
	})
}

// loadPorts returns a unit's ports with the hook's changes. It reads the ports of each unit once. It returns
// [hookapi.ErrUnknownUnit] if the unit does not exist.
func (c *Context) loadPorts(ctx context.Context, unit string) (*unitPorts, error) {
	if p, ok := c.ports[unit]; ok {
		return p, nil
	}

	stored, err := view(ctx, c, func(v *state.View) ([]state.Port, error) {
		if _, err := v.Unit(unit); err != nil {
			return nil, err
		}
		return v.Ports(unit)
	})
	if err != nil {
		return nil, rewordNotFound(err, unit)
	}

	c.ports[unit] = &unitPorts{stored: stored}
	return c.ports[unit], nil
}

// apply applies the hook's changes to the open ports. It returns the resulting ports, sorted, and does not
// change its argument.
func (p *unitPorts) apply(open []state.Port) []state.Port {
	open = slices.Clone(open)
	for _, change := range p.changes {
		open = slices.DeleteFunc(open, func(o state.Port) bool { return o == change.Port })
		if change.Open {
			open = append(open, change.Port)
		}
	}

	slices.SortFunc(open, state.ComparePorts)
	return open
}

// checkClosing returns an error if p overlaps a different open range of the unit, since closing p would leave that
// range open. stored holds the unit's ranges before the hook, and own holds its ranges with the hook's changes
// applied. If the hook itself has opened the overlapping range, checkClosing only logs a warning, as Juju does.
func (c *Context) checkClosing(unit string, stored, own []state.Port, p hookapi.Port) error {
	for _, o := range own {
		if !o.ConflictsWith(state.Port(p)) {
			continue
		}

		conflict := &hookapi.PortConflict{Unit: unit, Open: hookapi.Port(o), Want: p, Closing: true}
		if slices.Contains(stored, o) {
			return conflict
		}
		c.opts.Log("WARNING", "no port is closed: "+conflict.Error())
	}

	return nil
}

// checkPortConflict returns an error if p conflicts with an open range of the unit, or of another unit on its
// machine. own holds the unit's ranges with the hook's changes applied. If p is one of them, checkPortConflict
// returns nil.
func (c *Context) checkPortConflict(ctx context.Context, unit string, own []state.Port, p hookapi.Port) error {
	if slices.Contains(own, state.Port(p)) {
		return nil
	}

	for _, o := range own {
		if o.ConflictsWith(state.Port(p)) {
			return &hookapi.PortConflict{Unit: unit, Open: hookapi.Port(o), Want: p}
		}
	}

	taken, err := view(ctx, c, func(v *state.View) (*state.PortInUse, error) {
		other, found, err := v.PortConflict(unit, state.Port(p))
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, nil
		}
		return &other, nil
	})
	if err != nil {
		return rewordNotFound(err, unit)
	}
	if taken != nil {
		return &hookapi.PortConflict{Unit: taken.Unit, Open: hookapi.Port(taken.Port), Want: p}
	}

	return nil
}

// commit applies the hook's changes to the ports that the unit has in tx. It does nothing if the unit is gone.
func (p *unitPorts) commit(tx *state.Tx, unit string) error {
	if len(p.changes) == 0 {
		return nil
	}
	open, err := tx.Ports(unit)
	if err != nil {
		return state.IgnoreNotFound(err)
	}

	err = tx.SetPorts(unit, p.apply(open))
	return state.IgnoreNotFound(err)
}

// PortChange is a range that a hook has opened or closed.
type PortChange struct {
	Unit string
	Port state.Port
	Open bool
}

// String returns the change as a log line.
func (c PortChange) String() string {
	if c.Open {
		return "port opened: " + c.Port.String()
	}
	return "port closed: " + c.Port.String()
}

// PortChanges returns the ranges that the hook opens or closes, compared with the ports that the hook has read. It
// sorts the changes by unit. For each unit, closed ranges come first.
func (c *Context) PortChanges() (changes []PortChange) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for _, unit := range slices.Sorted(maps.Keys(c.ports)) {
		before := c.ports[unit].stored
		after := c.ports[unit].apply(before)
		for _, p := range before {
			if !slices.Contains(after, p) {
				changes = append(changes, PortChange{Unit: unit, Port: p, Open: false})
			}
		}

		for _, p := range after {
			if !slices.Contains(before, p) {
				changes = append(changes, PortChange{Unit: unit, Port: p, Open: true})
			}
		}
	}

	return changes
}
