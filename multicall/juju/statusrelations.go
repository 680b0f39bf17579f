package juju

import (
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state/charm"
	"bijou/state/status"
)

// relationNames puts relations in error first, else sorts by number.
func relationNames(s status.Status) []string {
	return slices.SortedFunc(maps.Keys(s.Relations), func(a, b string) int {
		return compareErrorFirst(relationState(s.Relations[a]), relationState(s.Relations[b]),
			compareNumbers(strings.TrimPrefix(a, "relation-"), strings.TrimPrefix(b, "relation-")))
	})
}

func relationTable(s status.Status) *console.Table {
	t := console.NewTable("RELATION", "INTERFACE", "PROVIDER", "CONSUMER", "STATE", "MESSAGE")
	for _, name := range relationNames(s) {
		r := s.Relations[name]
		provider, consumer := relationServices(r)
		t.Add(stateColour(relationState(r)), name, r.Interface, provider+":"+r.Services[provider].Name, consumer+":"+r.Services[consumer].Name,
			withLife(relationState(r), r.Life), relationMessage(r))
	}
	return t
}

// relationServices returns a peer relation's one service twice.
func relationServices(r status.Relation) (provider, consumer string) {
	for name, end := range r.Services {
		if end.Role != charm.Consumes {
			provider = name
		}
		if end.Role != charm.Provides {
			consumer = name
		}
	}
	return provider, consumer
}

func relationState(r status.Relation) string {
	ends := map[string]status.RelationUnit{}
	for service, end := range r.Services {
		ends[service] = status.RelationUnit{State: end.State}
	}
	return status.WorstRelation(ends)
}

func relationMessage(r status.Relation) string {
	var messages []string
	for _, end := range r.Services {
		for unit, view := range end.Units {
			if view.Message != "" {
				messages = append(messages, unit+": "+firstLine(view.Message)+failureHint(view.Stderr, view.See))
			}
		}
	}
	slices.Sort(messages)
	return strings.Join(messages, "; ")
}

// relationUnitTable has a row for an end without units, too.
func relationUnitTable(s status.Status) *console.Table {
	t := console.NewTable("RELATION", "INTERFACE", "SCOPE", "ENDPOINT", "ROLE", "UNIT", "STATE", "MESSAGE")
	for _, name := range relationNames(s) {
		r := s.Relations[name]
		for _, service := range slices.Sorted(maps.Keys(r.Services)) {
			end := r.Services[service]
			add := func(unit, shown, message string) {
				t.Add(stateColour(shown), name, r.Interface, string(r.Scope), service+":"+end.Name, string(end.Role), unit, withLife(shown, r.Life), message)
			}
			if len(end.Units) == 0 {
				add("-", end.State, "")
			}
			for _, unit := range relationUnits(end) {
				u := end.Units[unit]
				add(unit, u.State, relationUnitMessage(u))
			}
		}
	}
	return t
}

func relationUnits(end status.RelationEnd) []string {
	return slices.SortedFunc(maps.Keys(end.Units), func(a, b string) int {
		return compareErrorFirst(end.Units[a].State, end.Units[b].State, charm.CompareUnits(a, b))
	})
}

func relationUnitMessage(u status.RelationUnit) string {
	text := firstLine(u.Message)
	switch {
	case u.Resolved != "":
		text += " (marked as resolved)"
	case !u.NextRetry.IsZero():
		text += " (next retry at " + u.NextRetry.Local().Format(time.TimeOnly) + ")"
	}
	return text + failureHint(u.Stderr, u.See)
}
