package tools

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

func prepareOpenedPorts(f *hookenv.FlagSet) hookenv.Runner {
	o, endpoints := &hookenv.FormatOption{}, false
	f.AddBool(&endpoints, "print the endpoints of each range too", "endpoints")
	o.AddFlag(f)
	return func(ctx context.Context, inv *hookenv.Invocation) error {
		ports, err := inv.Hook.Ports(ctx)
		if err != nil {
			return err
		}
		return o.Print(inv, formatPorts(ports, endpoints))
	}
}

// formatPorts names each range once, in the order that the hook has them in.
func formatPorts(ports []hookapi.Port, withEndpoints bool) []string {
	lines, endpoints := []string{}, map[string][]string{}
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

// "*" stands for all endpoints.
func joinEndpoints(names []string) string {
	if slices.Contains(names, "*") {
		return "*"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
