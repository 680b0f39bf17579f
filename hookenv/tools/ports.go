package tools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// portChanger is all of open-port and close-port but the direction.
type portChanger struct {
	open              bool
	endpoints, format string
}

func preparePortChange(open bool) func(*hookenv.FlagSet) hookenv.Runner {
	return func(f *hookenv.FlagSet) hookenv.Runner {
		p := &portChanger{open: open}
		f.AddString(&p.endpoints, "only for these endpoints, separated by commas", "NAMES", "endpoints")
		f.AddString(&p.format, "accepted and ignored", "FORMAT", "format")
		return p.run
	}
}

func checkPortText(text string) error {
	if _, err := parsePort(text); err != nil {
		return hookenv.UsageErrorf("%v", err)
	}
	return nil
}

// run opens or closes the range for the unit.
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

	for _, port := range ports {
		if err := inv.Hook.SetPort(ctx, unit, port, p.open); err != nil {
			return rewordUnknown(err, unit)
		}
	}

	return nil
}

// unitArgument returns the unit whose ports the call changes; empty for the hook's own. A hook may change
// only those. Under juju do without --unit the call must name a unit.
func unitArgument(inv *hookenv.Invocation) (string, error) {
	if len(inv.Args) < 2 || !isUnit(inv.Args[1]) {
		if err := inv.LimitArgs(1); err != nil {
			return "", err
		}
		return "", inv.RequireUnitArgument()
	}

	unit := inv.Args[1]
	mayChange := inv.Facts.Unit == "" || inv.Facts.Operator || inv.Facts.Unit == unit
	if !mayChange {
		return "", hookenv.UsageErrorf("cannot change ports of %s: a unit changes its own", unit)
	}

	return unit, inv.LimitArgs(2)
}

// expandPorts returns the changes that one range stands for: one for each endpoint or, when it is closed,
// each open range within it.
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
	case p.open || !isOwn: // a hook is not told what another unit has open
		return []hookapi.Port{port}, nil
	}

	return closedRanges(ctx, inv, port)
}

// closedRanges returns the ranges that the call closes. Without endpoints these are the range for every
// endpoint that it was opened for.
func closedRanges(ctx context.Context, inv *hookenv.Invocation, port hookapi.Port) ([]hookapi.Port, error) {
	ports := []hookapi.Port{port}
	opened, err := inv.Hook.Ports(ctx)
	if err != nil {
		return nil, err
	}

	for _, other := range opened {
		if other.Endpoint != "" && other.IsSameRange(port) {
			ports = append(ports, other)
		}
	}

	return ports, nil
}

// expandEndpoints returns the port once for each endpoint of --endpoints. It returns an error for endpoints
// that the hook's own charm does not have. It does not know those of other units' charms.
func (p *portChanger) expandEndpoints(
	ctx context.Context,
	inv *hookenv.Invocation,
	port hookapi.Port,
	unit string,
) (ports []hookapi.Port, err error) {
	var known []string
	mine := inv.Facts.Unit != "" && (unit == "" || unit == inv.Facts.Unit)
	if mine {
		if known, err = inv.Hook.Bindings(ctx); err != nil {
			return nil, err
		}
	}

	for name := range strings.SplitSeq(p.endpoints, ",") {
		port.Endpoint = strings.TrimSpace(name)
		if mine && !slices.Contains(known, port.Endpoint) {
			return nil, hookenv.UsageErrorf("unknown endpoint %q: the charm has %s", port.Endpoint,
				strings.Join(known, ", "))
		}
		ports = append(ports, port)
	}

	return ports, nil
}

// parsePort reads "80", "80/udp", "100-200/tcp" and "icmp", in any case.
func parsePort(text string) (hookapi.Port, error) {
	numbers, protocol, found := strings.Cut(strings.ToLower(text), "/")
	if !found {
		protocol = "tcp"
	}
	if numbers == "icmp" {
		return hookapi.Port{Protocol: "icmp"}, nil
	}

	port := hookapi.Port{Protocol: protocol}
	first, last, isRange := strings.Cut(numbers, "-")
	if !isRange {
		last = first
	}
	if strings.Contains(last, "-") {
		return port, fmt.Errorf("invalid port range %q", numbers)
	}

	for _, bound := range []struct {
		to   *int
		text string
	}{{&port.From, first}, {&port.To, last}} {
		n, err := strconv.Atoi(bound.text)
		if err != nil {
			return port, fmt.Errorf("invalid port %q: %w", bound.text, err)
		}
		*bound.to = n
	}

	return port, checkPort(port)
}

// checkPort checks a range, with the words of Juju's errors.
func checkPort(p hookapi.Port) error {
	switch {
	case p.Protocol == "icmp":
		return fmt.Errorf("protocol \"icmp\" doesn't support any ports; got \"%d\"", p.From)
	case p.Protocol != "tcp" && p.Protocol != "udp":
		return fmt.Errorf("invalid protocol %q, expected \"tcp\", \"udp\", or \"icmp\"", p.Protocol)
	case p.From > p.To:
		return fmt.Errorf("invalid port range %d-%d/%s", p.From, p.To, p.Protocol)
	case p.From < 0 || p.To > 65535:
		return fmt.Errorf("port range bounds must be between 0 and 65535, got %d-%d", p.From, p.To)
	}

	return nil
}

// prepareOpenedPorts declares the options of opened-ports, which prints the open ranges of the unit.
func prepareOpenedPorts(f *hookenv.FlagSet) hookenv.Runner {
	endpoints := false
	f.AddBool(&endpoints, "print the endpoints of each range too", "endpoints")
	f.AddFormat()

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		ports, err := inv.Hook.Ports(ctx)
		return inv.PrintResult(formatPorts(ports, endpoints), err)
	}
}

// formatPorts returns the ranges as text, each once, in the hook's order.
func formatPorts(ports []hookapi.Port, withEndpoints bool) []string {
	lines := []string{}
	endpoints := map[string][]string{}
	for _, port := range ports {
		text := port.String()
		if !slices.Contains(lines, text) {
			lines = append(lines, text)
		}
		endpoints[text] = append(endpoints[text], cmp.Or(port.Endpoint, "*"))
	}

	if !withEndpoints {
		return lines
	}

	for i, text := range lines {
		lines[i] = text + " (" + joinEndpoints(endpoints[text]) + ")"
	}
	return lines
}

// joinEndpoints joins the names, or returns "*" if that stands for all endpoints among them.
func joinEndpoints(names []string) string {
	if slices.Contains(names, "*") {
		return "*"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
