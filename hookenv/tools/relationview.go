package tools

import (
	"slices"

	"bijou/hookenv/hookapi"
)

// relationView is how one unit, or all units of a service, see relations: what relation-list
// prints. The zero view sees both ends.
type relationView struct {
	viewer string       // a unit or a service
	role   hookapi.Role // empty: the opposite end
}

// selectEnds returns the ends of the view's role, or the opposite ones. The opposite of a peer is
// its peers.
func (v relationView) selectEnds(r hookapi.Relation) []hookapi.End {
	return slices.DeleteFunc(slices.Clone(r.Ends), func(end hookapi.End) bool {
		opposite := end.Service != serviceOf(v.viewer) || end.Role == hookapi.Peers
		return v.role != end.Role && !(v.role == "" && opposite)
	})
}

// listUnits returns the units that the viewer sees in the relations, without the viewer itself. A service
// as the viewer sees the other units that any one of its units sees. So it sees its own units only if there
// are several.
func (v relationView) listUnits(relations []hookapi.Relation) []string {
	units := []string{}
	for _, r := range relations {
		for _, end := range v.selectEnds(r) {
			for _, unit := range end.Units {
				alone := end.Service == v.viewer && len(end.Units) == 1
				if unit != v.viewer && !alone {
					units = append(units, unit)
				}
			}
		}
	}

	return sortUnits(units)
}

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

func (v relationView) filterByRole(relations []hookapi.Relation) []hookapi.Relation {
	return slices.DeleteFunc(slices.Clone(relations), func(r hookapi.Relation) bool {
		end, own := findEnd(r, serviceOf(v.viewer))
		return v.role != "" && !(own && end.Role == v.role)
	})
}

// buildAdjacency returns the relations with their services and units, as Python Juju prints them.
func buildAdjacency(relations []hookapi.Relation) map[string]any {
	all := map[string]any{}
	for _, r := range relations {
		services := map[string]any{}
		for _, end := range r.Ends {
			services[end.Service] = map[string]any{
				"relation-name": end.Name,
				"role":          string(end.Role),
				"units":         sortUnits(append([]string{}, end.Units...)),
			}
		}

		all[formatRelationID(hookapi.Classic, r, "")] = map[string]any{
			"interface": r.Interface,
			"services":  services,
		}
	}

	return all
}
