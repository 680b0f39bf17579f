package tools

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// prepareOpenedPorts declares the options of opened-ports, which prints the unit's open ranges.
func prepareOpenedPorts(f *hookenv.FlagSet) hookenv.Runner {
	endpoints := false
	f.AddBool(&endpoints, "also print the endpoints of each range", "endpoints")
	f.AddFormat()

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		ports, err := inv.Hook.Ports(ctx)
		if err != nil {
			return err
		}
		return inv.Print(formatPorts(ports, endpoints))
	}
}

// formatPorts returns the ranges as text, without duplicates and in the same order. With withEndpoints it adds the
// endpoints of each range.
func formatPorts(ports []hookapi.Port, withEndpoints bool) []string {
	lines := []string{}
	endpoints := map[string][]string{}
	for _, port := range ports {
		text := port.String() // does not contain the endpoint
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

// joinEndpoints sorts the names, and returns them joined by commas. If one of the names is "*", which stands for all
// endpoints, it returns only that.
func joinEndpoints(names []string) string {
	if slices.Contains(names, "*") {
		return "*"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
