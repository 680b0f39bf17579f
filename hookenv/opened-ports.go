package hookenv

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"bijou/hookenv/hookapi"
)

func openedPorts() Tool {
	return Tool{
		Name:     "opened-ports",
		Summary:  "list the unit's open ports",
		Usage:    "[--endpoints]",
		Examples: []string{"opened-ports", "opened-ports --format=json"},
		prepare: func(f *flagSet) runner {
			l := &portLister{}
			f.bool(&l.endpoints, "print the endpoints of each range too", "endpoints")
			l.output.declare(f)
			return l.run
		},
	}
}

type portLister struct {
	output
	endpoints bool
}

func (l *portLister) run(ctx context.Context, inv *invocation) error {
	if err := inv.noMore(0); err != nil {
		return err
	}
	if err := inv.local(); err != nil {
		return err
	}
	ports, err := inv.hook.Ports(ctx)
	if err != nil {
		return err
	}
	return l.print(inv, l.lines(ports))
}

// lines names each range once, in the order that the hook has them in.
func (l *portLister) lines(ports []hookapi.Port) []string {
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
		lines[i] = text + " (" + endpointList(endpoints[text]) + ")"
	}
	return lines
}

// endpointList sorts names; "*", all endpoints, holds any other.
func endpointList(names []string) string {
	if slices.Contains(names, "*") {
		return "*"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
