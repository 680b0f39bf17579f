package tools

import (
	"context"
	"errors"
	"fmt"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// prepareNetworkGet declares the options of network-get, which prints the addresses of an endpoint.
func prepareNetworkGet(f *hookenv.FlagSet) hookenv.Runner {
	g := &networkGetter{}
	f.AddBool(&g.primary, "print the address to listen on; cannot be used with other options", "primary-address")
	f.AddBool(&g.bind, "print the address to listen on", "bind-address")
	f.AddBool(&g.ingress, "print the address at which other units reach this unit", "ingress-address")
	f.AddBool(&g.egress, "print the networks from which this unit reaches others", "egress-subnets")
	g.relationFlag.addFlags(f)
	f.AddFormat()
	return g.run
}

// networkGetter is one call of network-get.
type networkGetter struct {
	relationFlag
	primary, bind, ingress, egress bool
}

// run prints the values that the options select for a binding, which is an endpoint of the charm.
func (g *networkGetter) run(ctx context.Context, inv *hookenv.Invocation) error {
	binding, err := g.bindingArgument(inv)
	if err != nil {
		return err
	}
	relation, err := g.namedRelation(ctx, inv)
	if err != nil {
		return err
	}

	network, err := inv.Hook.Network(ctx, binding, relation)
	if errors.Is(err, hookapi.ErrUnknownBinding) {
		return fmt.Errorf("no network config found for binding %q", binding)
	}
	if err != nil {
		return err
	}

	return inv.PrintResult(g.selectValues(inv, binding, network))
}

// bindingArgument returns the endpoint that the first argument names. The tool's Check has made sure that there is an
// argument. bindingArgument returns a usage error if it is empty, if there are more arguments, or if there is no local
// unit.
func (g *networkGetter) bindingArgument(inv *hookenv.Invocation) (string, error) {
	if inv.Args[0] == "" {
		return "", hookenv.UsageErrorf("no binding name specified")
	}
	if err := inv.LimitArgs(1); err != nil {
		return "", err
	}
	if err := inv.RequireLocalUnit(); err != nil {
		return "", err
	}

	return inv.Args[0], nil
}

// namedRelation returns the id of the relation in option -r, or [hookapi.NoRelation]. It does not use the hook's own
// relation, since an endpoint's addresses are the same in all its relations.
func (g *networkGetter) namedRelation(ctx context.Context, inv *hookenv.Invocation) (int, error) {
	if g.option == "" {
		return hookapi.NoRelation, nil
	}
	if err := g.checkRelation(ctx, inv); err != nil {
		return 0, err
	}

	return g.resolveRelation(ctx, inv, "") // a name is interpreted from the side of the local unit
}

// selectValues returns the values that the options select. It returns a single value unchanged, and several
// values as a dictionary. If no option selects a value, it returns all values.
func (g *networkGetter) selectValues(inv *hookenv.Invocation, binding string, n hookapi.Network) (any, error) {
	hasOther := g.bind || g.ingress || g.egress
	if g.primary && hasOther {
		return nil, errors.New("--primary-address must be the only flag specified")
	}

	address := bindAddress(n)
	needsAddress := g.primary || g.bind || g.ingress
	if needsAddress && address == "" {
		return nil, fmt.Errorf("no addresses attached to space for binding %q", binding)
	}
	if g.primary {
		return address, nil
	}

	selected := map[string]any{}
	if g.egress {
		selected["egress-subnets"] = n.Egress
	}
	if g.ingress {
		// Without its own ingress address, the endpoint is reached at the address to listen on.
		selected["ingress-address"] = address
		if len(n.Ingress) > 0 {
			selected["ingress-address"] = n.Ingress[0]
		}
	}
	if g.bind {
		selected["bind-address"] = address
	}

	switch len(selected) {
	case 0:
		return g.allValues(inv, n), nil
	case 1:
		for _, value := range selected {
			return value, nil
		}
	}
	return selected, nil
}

// bindAddress returns the address to listen on: the first address of the first interface, or "" if there is none.
func bindAddress(n hookapi.Network) string {
	if len(n.Interfaces) == 0 || len(n.Interfaces[0].Addresses) == 0 {
		return ""
	}
	return n.Interfaces[0].Addresses[0].Value
}

// allValues returns all values under the keys that charms read. Except for JSON, it adds the keys of older versions of
// Juju.
func (g *networkGetter) allValues(inv *hookenv.Invocation, n hookapi.Network) map[string]any {
	values := map[string]any{}
	older := inv.FormatFor(values) != hookenv.FormatJSON // depends only on the type of values
	var interfaces []any
	for _, i := range n.Interfaces {
		interfaces = append(interfaces, interfaceDictionary(i, older))
	}

	if len(interfaces) > 0 {
		values["bind-addresses"] = interfaces
	}
	if len(n.Egress) > 0 {
		values["egress-subnets"] = n.Egress
	}
	if len(n.Ingress) > 0 {
		values["ingress-addresses"] = n.Ingress
	}

	return values
}

// interfaceDictionary returns an interface as a dictionary with Juju's keys. If older is true, it adds the
// keys of older versions of Juju.
func interfaceDictionary(i hookapi.Interface, older bool) map[string]any {
	addresses := []any{}
	for _, a := range i.Addresses {
		address := map[string]any{"hostname": a.Hostname, "value": a.Value, "cidr": a.Network}
		if older {
			address["address"] = a.Value
		}
		addresses = append(addresses, address)
	}

	described := map[string]any{"mac-address": i.MAC, "interface-name": i.Name, "addresses": addresses}
	if older {
		described["macaddress"] = i.MAC
		described["interfacename"] = i.Name
	}
	return described
}
