package tools

import (
	"slices"

	"bijou/hookenv/hookapi"
)

// relationView selects the ends of relations that relation-list shows to one viewer. With a role, it selects the ends
// that have this role. Without a role, it selects the ends opposite the viewer's end. The zero view selects all ends.
type relationView struct {
	viewer string       // a unit or a service
	role   hookapi.Role // empty for the opposite end
}

// selectEnds returns the ends of the relation that the view selects. Without a role, these are the ends of services
// other than the viewer's, and the only end of a peer relation.
func (v relationView) selectEnds(r hookapi.Relation) []hookapi.End {
	var ends []hookapi.End
	for _, end := range r.Ends {
		isSelected := end.Role == v.role
		if v.role == "" {
			isSelected = end.Service != serviceOf(v.viewer) || end.Role == hookapi.Peers
		}
		if isSelected {
			ends = append(ends, end)
		}
	}
	return ends
}

// listUnits returns the units at the selected ends, without the viewer. If the viewer is a service, it returns each unit
// that at least one of the service's units sees. So for a peer relation with one unit it returns none, and for a peer
// relation with two units it returns both.
func (v relationView) listUnits(relations []hookapi.Relation) []string {
	units := []string{}
	for _, r := range relations {
		for _, end := range v.selectEnds(r) {
			if end.Service == v.viewer && len(end.Units) == 1 {
				continue // no other unit of the service sees this unit
			}

			for _, unit := range end.Units {
				if unit != v.viewer {
					units = append(units, unit)
				}
			}
		}
	}

	return sortUnits(units)
}

// listServices returns the services at the relations' selected ends, sorted and without duplicates.
func (v relationView) listServices(relations []hookapi.Relation) []string {
	services := []string{}
	for _, r := range relations {
		for _, end := range v.selectEnds(r) {
			services = append(services, end.Service)
		}
	}

	slices.Sort(services)
	return slices.Compact(services)
}

// listRelationNames returns the names of the relations at the end of the viewer's service, sorted and without
// duplicates. Without a viewer it returns the names of all ends.
func (v relationView) listRelationNames(relations []hookapi.Relation) []string {
	names := []string{}
	for _, r := range v.filterByRole(relations) {
		for _, end := range r.Ends {
			if end.Service == serviceOf(v.viewer) || v.viewer == "" {
				names = append(names, end.Name)
			}
		}
	}

	slices.Sort(names)
	return slices.Compact(names)
}

// filterByRole returns the relations in which the viewer's service has the view's role. It returns all relations if the
// view has no role.
func (v relationView) filterByRole(relations []hookapi.Relation) []hookapi.Relation {
	if v.role == "" {
		return relations
	}

	var filtered []hookapi.Relation
	for _, r := range relations {
		end, isOwn := findEnd(r, serviceOf(v.viewer))
		if isOwn && end.Role == v.role {
			filtered = append(filtered, r)
		}
	}
	return filtered
}

// buildAdjacency returns the relations with their services and units, as Python Juju prints them.
func buildAdjacency(relations []hookapi.Relation) map[string]any {
	adjacency := map[string]any{}
	for _, r := range relations {
		services := map[string]any{}
		for _, end := range r.Ends {
			services[end.Service] = map[string]any{
				"relation-name": end.Name,
				"role":          string(end.Role),
				"units":         sortUnits(append([]string{}, end.Units...)),
			}
		}

		id := formatRelationID(hookapi.Classic, r, "") // the classic form does not depend on a service
		adjacency[id] = map[string]any{
			"interface": r.Interface,
			"services":  services,
		}
	}

	return adjacency
}
