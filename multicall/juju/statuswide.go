package juju

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state/charm"
	"bijou/state/status"
	"bijou/state/text"
)

// serviceTable returns a table with a row for each application, which never leaves out a column.
func serviceTable(s status.Status) *console.Table {
	t := console.NewTable("APPLICATION", "VERSION", "CHARM", "EXPOSED", "UNITS", "STATUS", "MESSAGE")
	t.PaintOnly("STATUS")
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		service := s.Services[name]
		exposed := "no"
		if service.Exposed {
			exposed = "yes"
		}

		info := service.StatusInfo()
		t.Add(stateColour(info.Current), name, text.FirstLine(service.Version), service.Charm, exposed,
			strconv.Itoa(len(service.Units)), status.WithLife(info.Current, service.Life), text.FirstLine(info.Message))
	}

	return t
}

// wideUnitTable returns the table of all units, with units in error first.
func wideUnitTable(s status.Status) *console.Table {
	units := allUnits(s)
	names := slices.SortedFunc(maps.Keys(units), func(a, b string) int {
		return compareErrorFirst(rowState(units[a]), rowState(units[b]), charm.CompareUnits(a, b))
	})
	t := console.NewTable("UNIT", "STATE", "WORKLOAD", "AGENT", "MACHINE", "ADDRESS", "PORTS", "SINCE", "MESSAGE")
	t.PaintOnly("STATE")

	for _, name := range names {
		u := units[name]
		workload := cmp.Or(u.Workload, &status.Workload{})
		// The colour of the workload counts only if the state of the unit has none.
		colour := cmp.Or(stateColour(rowState(u)), stateColour(workload.Current))
		if u.Leader {
			// The star follows a space, since scripts search for the name as a word.
			name += " *"
		}

		t.Add(colour, name, status.WithLife(u.State, u.Life), cmp.Or(workload.Current, "-"),
			u.AgentInfo().Current, u.Machine, u.PublicAddress, strings.Join(u.OpenPorts, ","),
			formatSince(u.Since()), unitMessage(u, workload.Message))
	}

	return t
}

// formatSince returns the time of day for the last 12 hours, and otherwise the date. It returns "" for the
// zero time.
func formatSince(since time.Time) string {
	switch {
	case since.IsZero():
		return ""
	case time.Since(since) < 12*time.Hour:
		return since.Local().Format("15:04")
	}

	return since.Local().Format("Jan 2")
}
