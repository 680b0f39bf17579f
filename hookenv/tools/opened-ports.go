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
	l := &portLister{}
	f.AddBool(&l.endpoints, "print the endpoints of each range too", "endpoints")
	l.FormatOption.AddFlag(f)
	return l.run
}

type portLister struct {
	hookenv.FormatOption
	endpoints bool
}

func (l *portLister) run(ctx context.Context, inv *hookenv.Invocation) error {
	ports, err := inv.Hook.Ports(ctx)
	if err != nil {
		return err
	}
	return l.Print(inv, l.formatPorts(ports))
}

// formatPorts names each range once, in the order that the hook has them in.
func (l *portLister) formatPorts(ports []hookapi.Port) []string {
	lines, endpoints := []string{}, map[string][]string{}
	for _, port := range ports {
		text := port.String()
		if !slices.Contains(lines, text) {
			lines = append(lines, text)
		}
		endpoints[text] = append(endpoints[text], cmp.Or(port.Endpoint, "*"))
	}
	if !l.endpoints {
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
