package juju

import (
	"fmt"
	"path"
	"slices"

	"bijou/state"
)

// checkGlobs refuses patterns that cannot match anything.
func checkGlobs(globs []string) error {
	for _, g := range globs {
		if _, err := path.Match(g, ""); err != nil {
			return fmt.Errorf("%q is not a pattern: %w", g, err)
		}
	}
	return nil
}

// selectStatus keeps the services and units that a glob matches, the machines
// that these units are on, and the relations that these services have.
func selectStatus(s state.Status, globs []string) state.Status {
	match := func(name string) bool {
		return slices.ContainsFunc(globs, func(g string) bool { ok, _ := path.Match(g, name); return ok })
	}
	kept := state.Status{
		Machines: map[string]state.MachineView{}, Services: map[string]state.ServiceView{}, Relations: map[string]state.RelationView{},
	}
	for name, service := range s.Services {
		units := map[string]state.UnitView{}
		for unit, view := range service.Units {
			if match(name) || match(unit) {
				units[unit] = view
				kept.Machines[view.Machine] = s.Machines[view.Machine]
			}
		}
		if match(name) || len(units) > 0 {
			service.Units = units
			kept.Services[name] = service
		}
	}
	for name, relation := range s.Relations {
		for service := range relation.Services {
			if _, ok := kept.Services[service]; ok {
				kept.Relations[name] = relation
			}
		}
	}
	return kept
}
