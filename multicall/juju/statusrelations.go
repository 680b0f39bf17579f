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

// relationTable returns a table with a row for each relation, with relations in error first.
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

// relationReason returns why units of the relation are in error. A single failure keeps the command that shows
// more, if it has one. The messages and commands of several failures become one text. Without failures, the reason
// is empty.
func relationReason(r status.Relation) reason {
	var failures []reason
	for _, end := range r.Services {
		for unit, u := range end.Units {
			if u.Message != "" {
				shown := unit + ": " + text.FirstLine(u.Message)
				failures = append(failures, failureReason(shown, cmp.Or(u.Stderr, u.Logged), u.See))
			}
		}
	}

	if len(failures) == 1 {
		return failures[0]
	}

	var messages []string
	for _, failure := range failures {
		messages = append(messages, failure.String())
	}
	slices.Sort(messages)
	return reason{text: strings.Join(messages, "; ")}
}

// relationUnitTable returns a table with a row for each unit of each relation. Relations in error come first, and
// at each end units in error come first. An end without units also has a row.
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

			names := slices.SortedFunc(maps.Keys(end.Units), func(a, b string) int {
				return compareErrorFirst(end.Units[a].State, end.Units[b].State, charm.CompareUnits(a, b))
			})
			for _, unit := range names {
				u := end.Units[unit]
				add(unit, u.State, relationUnitReason(u))
			}
		}
	}

	return t
}

// relationUnitReason returns why one unit of the relation is in error. It adds when the failed hook is retried, or
// that the error is marked as resolved. The reason is empty if no hook has failed.
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
