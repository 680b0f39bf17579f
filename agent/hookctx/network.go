package hookctx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// Address returns the local unit's address; empty if it has none.
func (c *Context) Address(ctx context.Context, public bool) (string, error) {
	return answer(ctx, c, func() (string, error) {
		unit, err := c.localUnit("")
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

func (c *Context) readBindings(ctx context.Context) ([]string, error) {
	return view(ctx, c, func(v *state.View) ([]string, error) {
		return v.Bindings(c.opts.Facts.Service, c.opts.CharmURL)
	})
}

// Network describes what an endpoint is bound to: every endpoint of a unit to the address
// that it is reached by.
func (c *Context) Network(ctx context.Context, binding string, relation int) (hookapi.Network, error) {
	return answer(ctx, c, func() (hookapi.Network, error) {
		unit, err := c.localUnit("")
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
			if _, err := c.loadRelation(ctx, relation); err != nil {
				return hookapi.Network{}, err
			}
		}
		address, err := view(ctx, c, func(v *state.View) (string, error) { return v.UnitAddress(unit, false) })
		if err != nil {
			return hookapi.Network{}, err
		}
		return describeNetwork(ctx, address)
	})
}

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
	near := findInterface(at.Value)
	at.Network = near.network
	n := hookapi.Network{
		Interfaces: []hookapi.Interface{{Name: near.name, MAC: near.mac, Addresses: []hookapi.Address{at}}},
		Ingress:    []string{at.Value},
	}
	if ip := net.ParseIP(at.Value); ip != nil {
		n.Egress = []string{HostSubnet(ip.String())}
	}
	return n, nil
}

// resolveHost prefers an address that others reach; it returns an empty string for an unknown name.
func resolveHost(ctx context.Context, host string) string {
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil || len(found) == 0 {
		return ""
	}
	i := slices.IndexFunc(found, func(a string) bool { return !net.ParseIP(a).IsLoopback() })
	return found[max(i, 0)]
}

// HostSubnet returns the subnet of one address; a name is returned as it is.
func HostSubnet(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	return netip.PrefixFrom(ip, ip.BitLen()).String()
}

// hostInterface is an interface of this host; zero where the address is none of this host's.
type hostInterface struct{ name, mac, network string }

func findInterface(address string) hostInterface {
	ip := net.ParseIP(address)
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			n, ok := a.(*net.IPNet)
			if ok && n.IP.Equal(ip) {
				whole := net.IPNet{IP: n.IP.Mask(n.Mask), Mask: n.Mask}
				return hostInterface{i.Name, i.HardwareAddr.String(), whole.String()}
			}
		}
	}
	return hostInterface{}
}
