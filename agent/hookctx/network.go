package hookctx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// Network describes what an endpoint is bound to: every endpoint of a unit to the
// address that it is reached by.
func (c *Context) Network(ctx context.Context, binding string, relation int) (hookapi.Network, error) {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return hookapi.Network{}, err
	}
	unit, err := c.local("")
	if err != nil {
		return hookapi.Network{}, err
	}
	names, err := c.bindings(ctx)
	if err != nil {
		return hookapi.Network{}, err
	}
	if !slices.Contains(names, binding) {
		return hookapi.Network{}, fmt.Errorf("%q: %w", binding, hookapi.ErrUnknownBinding)
	}
	if relation != hookapi.NoRelation {
		if _, err := c.describe(ctx, relation); err != nil {
			return hookapi.Network{}, err
		}
	}
	var address string
	err = c.view(ctx, func(v *state.View) (err error) {
		address, err = v.UnitAddress(unit, false)
		return err
	})
	if err != nil {
		return hookapi.Network{}, err
	}
	return network(ctx, address)
}

// network is what a host is known by under an address.
func network(ctx context.Context, address string) (hookapi.Network, error) {
	if address == "" {
		return hookapi.Network{}, errors.New("the unit has no address yet")
	}
	at := hookapi.Address{Value: address}
	if net.ParseIP(address) == nil {
		if found := resolved(ctx, address); found != "" {
			at = hookapi.Address{Hostname: address, Value: found}
		}
	}
	near := localInterface(at.Value)
	at.Network = near.network
	n := hookapi.Network{
		Interfaces: []hookapi.Interface{{Name: near.name, MAC: near.mac, Addresses: []hookapi.Address{at}}},
		Ingress:    []string{at.Value},
	}
	if ip := net.ParseIP(at.Value); ip != nil {
		n.Egress = []string{single(ip)}
	}
	return n, nil
}

// resolved is the first address of a host's name, one that others reach if there
// is such; empty if it is nobody's.
func resolved(ctx context.Context, host string) string {
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil || len(found) == 0 {
		return ""
	}
	i := slices.IndexFunc(found, func(a string) bool { return !net.ParseIP(a).IsLoopback() })
	return found[max(i, 0)]
}

// single is the network of one address alone.
func single(ip net.IP) string {
	if ip.To4() != nil {
		return ip.String() + "/32"
	}
	return ip.String() + "/128"
}

// near is an interface of this host; empty where the address is none of it.
type near struct{ name, mac, network string }

func localInterface(address string) near {
	ip := net.ParseIP(address)
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			n, ok := a.(*net.IPNet)
			if ok && n.IP.Equal(ip) {
				whole := net.IPNet{IP: n.IP.Mask(n.Mask), Mask: n.Mask}
				return near{i.Name, i.HardwareAddr.String(), whole.String()}
			}
		}
	}
	return near{}
}
