package juju

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state/charm"
	"bijou/state/status"
	"bijou/state/text"
)

func relationTable(s status.Status) *console.Table {
	t := console.NewTable("RELATION", "INTERFACE", "PROVIDER", "CONSUMER", "STATE", "MESSAGE")
	t.PaintOnly("STATE")

	for _, name := range relationNames(s) {
		r := s.Relations[name]
		provider, consumer := r.Ends()
		addRow(t, r.State(), relationReason(r), name, r.Interface, provider+":"+r.Services[provider].Name,
			consumer+":"+r.Services[consumer].Name, status.WithLife(r.State(), r.Life))
	}

	return t
}

// relationReason returns why units of the relation are in error. If there is only one failure, the reason has its
// hint. Otherwise it has the messages of all failures in one line.
func relationReason(r status.Relation) reason {
	var all []reason
	for _, end := range r.Services {
		for unit, view := range end.Units {
			if view.Message != "" {
				shown := unit + ": " + text.FirstLine(view.Message)
				all = append(all, failureReason(shown, cmp.Or(view.Stderr, view.Logged), view.See))
			}
		}
	}

	if len(all) == 1 {
		return all[0]
	}

	var messages []string
	for _, why := range all {
		messages = append(messages, why.String())
	}
	slices.Sort(messages)
	return reason{text: strings.Join(messages, "; ")}
}

// relationUnitTable returns the table of units in relations. An end without units also has a row.
func relationUnitTable(s status.Status) *console.Table {
	t := console.NewTable("RELATION", "INTERFACE", "SCOPE", "ENDPOINT", "ROLE", "UNIT", "STATE", "MESSAGE")
	t.PaintOnly("STATE")

	for _, name := range relationNames(s) {
		r := s.Relations[name]

		for _, service := range slices.Sorted(maps.Keys(r.Services)) {
			end := r.Services[service]
			add := func(unit, shown string, why reason) {
				addRow(t, shown, why, name, r.Interface, string(r.Scope), service+":"+end.Name, string(end.Role),
					unit, status.WithLife(shown, r.Life))
			}

			if len(end.Units) == 0 {
				add("-", end.State, reason{})
			}

			for _, unit := range slices.SortedFunc(maps.Keys(end.Units), func(a, b string) int {
				return compareErrorFirst(end.Units[a].State, end.Units[b].State, charm.CompareUnits(a, b))
			}) {
				u := end.Units[unit]
				add(unit, u.State, relationUnitReason(u))
			}
		}
	}

	return t
}

// relationUnitReason returns why one unit of the relation is in error, and whether it retries.
func relationUnitReason(u status.RelationUnit) reason {
	shown := text.FirstLine(u.Message)
	switch {
	case u.Resolved != "":
		shown += " (marked as resolved)"
	case !u.NextRetry.IsZero():
		shown += retryText(u.NextRetry)
	}

	return failureReason(shown, cmp.Or(u.Stderr, u.Logged), u.See)
}
