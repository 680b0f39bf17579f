package juju

import (
	"maps"
	"slices"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
)

// selectsByMore reports whether a selector may be more than the name of an application or unit: a machine's
// id, or a status of a unit, its workload or its agent.
func selectsByMore(selector string) bool { return isMachineID(selector) || isStatusWord(selector) }

// isStatusWord reports whether the word can be a status of a unit, its workload or its agent.
func isStatusWord(word string) bool {
	return slices.Contains([]string{
		"active", "blocked", "waiting", "maintenance", "error", "unknown", "terminated", "installing", "idle", "executing",
		"allocating", "lost", "failed", state.UnitDown, state.UnitPending, state.UnitStarted, "installed", "stopped",
	}, word)
}

// isMachineID reports whether id has the form of a machine's id, which is also the form of a unit's number.
func isMachineID(id string) bool { return charm.IsUnit("a/" + id) }

// selectStatus returns the part of a status that the selectors match, or all of it if there are none.
//
// An application's name selects all its units. A unit's name, its machine's id or one of its statuses selects its
// application with only the units that match. The result also has the machines of these units, machines that are
// named, and the relations of these applications. In these relations, the ends at selected applications have only
// the selected units. The other ends have all of their units.
func selectStatus(s status.Status, selectors []string) status.Status {
	if len(selectors) == 0 {
		return s
	}

	globs := status.NewGlobs(selectors)
	kept := s
	// As in status.Read, only a status without selectors shows the trouble of the provisioner.
	kept.Provisioner = nil
	kept.Machines = map[string]status.Machine{}
	kept.Services = map[string]status.Service{}
	kept.Relations = map[string]status.Relation{}

	for name, service := range s.Services {
		if view, ok := selectService(name, service, globs); ok {
			kept.Services[name] = view
		}
	}

	for id, m := range s.Machines {
		if _, isNamed := globs[id]; isNamed {
			// This records that the selector matches.
			globs.Match(id)
			kept.Machines[id] = m
		}
	}
	for _, u := range allUnits(kept) {
		if m, ok := s.Machines[u.Machine]; ok {
			kept.Machines[u.Machine] = m
		}
	}

	for name, relation := range s.Relations {
		if view, ok := selectRelation(relation, kept.Services); ok {
			kept.Relations[name] = view
		}
	}

	// A status that no unit has is not an error, since the empty result is the answer.
	kept.Unmatched = slices.DeleteFunc(globs.Unmatched(selectors), isStatusWord)
	return kept
}

// selectService returns the service with the units that match the globs, or with all units if its name
// matches. ok is false if nothing matches.
func selectService(name string, view status.Service, globs status.Globs) (kept status.Service, ok bool) {
	isNamed := globs.Match(name)
	units := map[string]status.Unit{}
	for unit, u := range view.Units {
		// Match also records that the selector of a unit matches, so it comes before isNamed.
		if slices.ContainsFunc(unitSelectors(unit, u), globs.Match) || isNamed {
			units[unit] = u
		}
	}

	view.Units = units
	return view, isNamed || len(units) > 0
}

// unitSelectors returns the words that select a unit.
func unitSelectors(name string, u status.Unit) []string {
	return []string{name, u.Machine, u.Word(), u.State, u.WorkloadInfo().Current, u.AgentInfo().Current}
}

// selectRelation returns the relation, with only the selected units at the ends of services. ok is false if
// no end belongs to one of these services.
func selectRelation(view status.Relation, services map[string]status.Service) (kept status.Relation, ok bool) {
	ends := map[string]status.RelationEnd{}
	for name, end := range view.Services {
		if service, isSelected := services[name]; isSelected {
			end = selectEnd(end, service)
			ok = true
		}
		ends[name] = end
	}

	view.Services = ends
	return view, ok
}

// selectEnd returns the end with the service's selected units, and with the state that follows from them.
func selectEnd(end status.RelationEnd, service status.Service) status.RelationEnd {
	units := maps.Clone(end.Units)
	maps.DeleteFunc(units, func(name string, _ status.RelationUnit) bool {
		_, ok := service.Units[name]
		return !ok
	})
	if len(units) < len(end.Units) {
		end.State = status.WorstRelation(units)
	}

	end.Units = units
	return end
}
