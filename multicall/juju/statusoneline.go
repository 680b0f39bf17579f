package juju

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"bijou/state/charm"
	"bijou/state/status"
	"bijou/state/text"
)

// writeOneline writes a line for each unit, as Juju does. Subordinates are below their principals.
func writeOneline(w io.Writer, s status.Status) error {
	out := bufio.NewWriter(w)
	units := allUnits(s)

	// write writes a unit's line, and then the lines of its subordinates.
	var write func(name, indent string)
	write = func(name, indent string) {
		u := units[name]
		line := fmt.Sprintf("%s- %s: %s (agent:%s, workload:%s)", indent, name, u.PublicAddress, u.AgentInfo().Current,
			u.WorkloadInfo().Current)
		if len(u.OpenPorts) > 0 {
			line += " " + strings.Join(u.OpenPorts, ", ")
		}
		fmt.Fprintln(out, text.Escape(line))

		for _, subordinate := range u.Subordinates {
			if _, shown := units[subordinate]; shown {
				write(subordinate, indent+"  ")
			}
		}
	}

	for _, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		_, isBelowPrincipal := units[units[name].Principal]
		if !isBelowPrincipal {
			write(name, "")
		}
	}
	return out.Flush()
}

// writeSummary writes how many machines and units are in each state, the applications, and the opened ports.
func writeSummary(w io.Writer, s status.Status) error {
	out := bufio.NewWriter(w)
	units := allUnits(s)

	machines := map[string]int{}
	for _, m := range s.Machines {
		machines[string(m.State)]++
	}
	writeCounts(out, "MACHINES", len(s.Machines), machines)

	words := map[string]int{}
	ports := map[string]bool{}
	for _, u := range units {
		words[u.Word()]++
		for _, port := range u.OpenPorts {
			ports[port] = true
		}
	}
	writeCounts(out, "UNITS", len(units), words)

	fmt.Fprintf(out, "APPLICATIONS: %d\n", len(s.Services))
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		service := s.Services[name]
		line := fmt.Sprintf("%12s: %s, %s", applicationWord(service), name, formatCount(len(service.Units), "unit"))
		if service.Exposed {
			line += ", exposed"
		}
		fmt.Fprintln(out, text.Escape(line))
	}

	if len(ports) > 0 {
		fmt.Fprintf(out, "PORTS: %s\n", text.Escape(strings.Join(slices.Sorted(maps.Keys(ports)), ", ")))
	}
	return out.Flush()
}

// writeCounts writes the heading with the total, and then a line for each word with its count.
func writeCounts(out *bufio.Writer, heading string, total int, counts map[string]int) {
	fmt.Fprintf(out, "%s: %d\n", heading, total)
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "%12s: %d\n", text.Escape(word), counts[word])
	}
}
