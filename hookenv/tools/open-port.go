package tools

import (
	"context"
	"slices"
	"strings"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// portChanger is one call of open-port or close-port.
type portChanger struct {
	open              bool
	endpoints, format string
}

// preparePortChange returns the Prepare function of open-port if open is true, or else of close-port.
func preparePortChange(open bool) func(*hookenv.FlagSet) hookenv.Runner {
	return func(f *hookenv.FlagSet) hookenv.Runner {
		p := &portChanger{open: open}
		f.AddString(&p.endpoints, "only for these endpoints, separated by commas", "NAMES", "endpoints")
		f.AddString(&p.format, "accepted and ignored", "FORMAT", "format")
		return p.run
	}
}

// run opens or closes the range of ports for the unit.
func (p *portChanger) run(ctx context.Context, inv *hookenv.Invocation) error {
	port, err := parsePort(inv.Args[0])
	if err != nil {
		return err
	}
	unit, err := unitArgument(inv)
	if err != nil {
		return err
	}

	inv.DeprecateFormat(p.format)
	ports, err := p.expandPorts(ctx, inv, port, unit)
	if err != nil {
		return err
	}

	for _, expanded := range ports {
		if err := inv.Hook.SetPort(ctx, unit, expanded, p.open); err != nil {
			return rewordUnknown(err, unit)
		}
	}

	return nil
}

// unitArgument returns the unit in the second argument, or an empty string for the hook's own unit if there is no such
// argument. A hook can change only the ports of its own unit. Under juju do without --unit, the call must name a unit.
func unitArgument(inv *hookenv.Invocation) (string, error) {
	if len(inv.Args) < 2 || !isUnit(inv.Args[1]) {
		// A second argument that is not the name of a unit is an extra argument.
		if err := inv.LimitArgs(1); err != nil {
			return "", err
		}
		return "", inv.RequireUnitArgument()
	}

	unit := inv.Args[1]
	mayChange := inv.Facts.Unit == "" || inv.Facts.Operator || inv.Facts.Unit == unit
	if !mayChange {
		return "", hookenv.UsageErrorf("cannot change ports of %s: a unit can change only its own", unit)
	}

	return unit, inv.LimitArgs(2)
}

// expandPorts returns the ranges to change. With --endpoints there is one for each endpoint. Without it, there is the
// range itself, which is for all endpoints. For the hook's own unit, close-port then also closes the range for each
// endpoint for which it is open.
func (p *portChanger) expandPorts(
	ctx context.Context,
	inv *hookenv.Invocation,
	port hookapi.Port,
	unit string,
) ([]hookapi.Port, error) {
	isOwn := unit == "" || unit == inv.Facts.Unit
	switch {
	case p.endpoints != "":
		return p.expandEndpoints(ctx, inv, port, unit)
	case p.open || !isOwn: // hookapi does not list the open ports of other units
		return []hookapi.Port{port}, nil
	}

	return closedRanges(ctx, inv, port)
}

// expandEndpoints returns the range once for each endpoint of --endpoints. For the hook's own unit it returns an error
// if the charm lacks one of these endpoints. It does not check the endpoints of other units, whose charms it does not
// know.
func (p *portChanger) expandEndpoints(
	ctx context.Context,
	inv *hookenv.Invocation,
	port hookapi.Port,
	unit string,
) (ports []hookapi.Port, err error) {
	var known []string
	isOwn := inv.Facts.Unit != "" && (unit == "" || unit == inv.Facts.Unit)
	if isOwn {
		if known, err = inv.Hook.Bindings(ctx); err != nil {
			return nil, err
		}
	}

	for name := range strings.SplitSeq(p.endpoints, ",") {
		port.Endpoint = strings.TrimSpace(name)
		if isOwn && !slices.Contains(known, port.Endpoint) {
			return nil, hookenv.UsageErrorf("unknown endpoint %q: the charm has %s", port.Endpoint,
				strings.Join(known, ", "))
		}
		ports = append(ports, port)
	}

	return ports, nil
}
