package juju

import (
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"

	"bijou/state/charm"
	"bijou/state/status"
)

func checkGlobs(globs []string) error {
	for _, g := range globs {
		if _, err := path.Match(g, ""); err != nil {
			return fmt.Errorf("%q is not a pattern: %w", g, err)
		}
	}
	return nil
}

// globMatcher are the patterns of one command, and whether each has matched.
type globMatcher map[string]bool

func newGlobMatcher(patterns []string) globMatcher {
	g := globMatcher{}
	for _, p := range patterns {
		g[p] = false
	}
	return g
}

// match remembers every pattern that matches.
func (g globMatcher) match(name string) (matches bool) {
	for pattern := range g {
		if ok, _ := path.Match(pattern, name); ok {
			g[pattern], matches = true, true
		}
	}
	return matches
}

// scopeOf returns what to read of the status for the patterns: all that one may match.
func scopeOf(patterns []string) status.Scope {
	if len(patterns) == 0 {
		return nil
	}
	return func(service string) (all bool, units []string) {
		for _, p := range patterns {
			of, number, isUnit := strings.Cut(p, "/")
			switch matches, _ := path.Match(of, service); {
			case !matches:
			case !isUnit || !charm.IsUnit(service+"/"+number):
				all = true
			default:
				units = append(units, service+"/"+number)
			}
		}
		return all, units
	}
}

type selection struct {
	status    status.Status
	unmatched []string // the patterns that match nothing, as they were given
}

// selectStatus keeps the services and units that a pattern matches; a service's name keeps
// all its units, a unit's its service with no other unit. With them it keeps the machines
// that these units are on, and the relations of these services: of their own ends only the
// units that were kept, of others' ends all. Without patterns it keeps everything.
func selectStatus(s status.Status, patterns []string) selection {
	if len(patterns) == 0 {
		return selection{status: s}
	}
	g := newGlobMatcher(patterns)
	kept := status.Status{
		Environment: s.Environment, Storage: s.Storage,
		Machines: map[string]status.Machine{}, Services: map[string]status.Service{}, Relations: map[string]status.Relation{},
	}
	for name, service := range s.Services {
		if view, ok := selectService(name, service, g); ok {
			kept.Services[name] = view
		}
	}
	for _, service := range kept.Services {
		for _, unit := range service.Units {
			if m, ok := s.Machines[unit.Machine]; ok {
				kept.Machines[unit.Machine] = m
			}
		}
	}
	for name, relation := range s.Relations {
		if view, ok := selectRelation(relation, kept.Services); ok {
			kept.Relations[name] = view
		}
	}
	return selection{status: kept, unmatched: g.listUnmatched(patterns)}
}

func (g globMatcher) listUnmatched(patterns []string) (none []string) {
	for _, p := range patterns {
		if !g[p] {
			none = append(none, p)
		}
	}
	return none
}

func selectService(name string, view status.Service, g globMatcher) (kept status.Service, ok bool) {
	whole := g.match(name)
	units := map[string]status.Unit{}
	for unit, u := range view.Units {
		if g.match(unit) || whole {
			units[unit] = u
		}
	}
	view.Units = units
	return view, whole || len(units) > 0
}

// selectRelation returns false if no end is at a service that was kept.
func selectRelation(view status.Relation, services map[string]status.Service) (kept status.Relation, ok bool) {
	ends := map[string]status.RelationEnd{}
	for name, end := range view.Services {
		if service, own := services[name]; own {
			end, ok = selectEnd(end, service), true
		}
		ends[name] = end
	}
	view.Services = ends
	return view, ok
}

// selectEnd derives the end's state from the units that are left.
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

func quoteAll(patterns []string) []string {
	all := make([]string, len(patterns))
	for i, p := range patterns {
		all[i] = strconv.Quote(p)
	}
	return all
}
