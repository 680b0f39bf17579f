package hookenv

import (
	"slices"

	"bijou/hookenv/hookapi"
)

// view is how one unit, or all units of a service, see relations: what
// relation-list prints. The zero viewer sees both ends.
type view struct {
	viewer string       // a unit or a service
	role   hookapi.Role // empty: the opposite end
}

// ends are those that the view picks of a relation: of its role, or the
// opposite one. The opposite of a peer is its peers.
func (v view) ends(r hookapi.Relation) []hookapi.End {
	var picked []hookapi.End
	for _, end := range r.Ends {
		opposite := end.Service != serviceOf(v.viewer) || end.Role == hookapi.Peers
		if v.role == end.Role || v.role == "" && opposite {
			picked = append(picked, end)
		}
	}
	return picked
}

// units lists the units of the ends, without the viewer itself. A service sees
// what any of its units sees: one of its own only if there is another.
func (v view) units(relations []hookapi.Relation) []string {
	units := []string{}
	for _, r := range relations {
		for _, end := range v.ends(r) {
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

func (v view) services(relations []hookapi.Relation) []string {
	services := []string{}
	for _, r := range relations {
		for _, end := range v.ends(r) {
			services = append(services, end.Service)
		}
	}
	slices.Sort(services)
	return slices.Compact(services)
}

// relationNames are the viewer's own names of the relations.
func (v view) relationNames(relations []hookapi.Relation) []string {
	names := []string{}
	for _, r := range v.ownRole(relations) {
		for _, end := range r.Ends {
			if end.Service == serviceOf(v.viewer) || v.viewer == "" {
				names = append(names, end.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ownRole keeps the relations in which the viewer's own end has the role.
func (v view) ownRole(relations []hookapi.Relation) []hookapi.Relation {
	var kept []hookapi.Relation
	for _, r := range relations {
		end, own := endOf(r, serviceOf(v.viewer))
		if v.role == "" || own && end.Role == v.role {
			kept = append(kept, r)
		}
	}
	return kept
}

// adjacency is who is related to whom, as the seeds print it.
func adjacency(relations []hookapi.Relation) map[string]any {
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
		all[idFor(hookapi.Classic, r, "")] = map[string]any{"interface": r.Interface, "services": services}
	}
	return all
}
