package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"bijou/state/charm"
)

// charmEndpoint is an endpoint with the facts of its charm and service that decide its possible relations.
type charmEndpoint struct {
	Endpoint
	interfaceName string
	scope         charm.Scope
	series        string // the service's series
	implied       bool   // it is juju-info, which no charm declares

	subordinate bool // the service is a subordinate
	limit       int  // the limit of relations at this endpoint; 0 for no limit
}

// canRelateTo reports whether d and other have opposite roles, the same interface and different services.
func (d charmEndpoint) canRelateTo(other charmEndpoint) bool {
	opposite := d.Role == charm.Provides && other.Role == charm.Consumes ||
		d.Role == charm.Consumes && other.Role == charm.Provides
	return opposite && d.interfaceName == other.interfaceName && d.Service != other.Service
}

// relationLimit returns how many relations the endpoint can have, or 0 for any number. It returns 0 for classic
// charms: many of their limits are wrong, since Juju did not enforce limits when these charms were written.
func relationLimit(rel charm.Relation, s Service) int {
	if s.Dialect == charm.Classic {
		return 0
	}
	return rel.Limit
}

// Related is a service with the metadata that declares its endpoints.
type Related struct {
	Service Service
	Meta    *charm.Meta // the metadata of the charm that the service runs or will run
}

// findEndpoint returns the endpoint with the facts of its charm and service. It returns ErrNotFound if the
// service does not exist or its charm does not have the endpoint, and ErrDead if the service is not alive.
func (v *View) findEndpoint(e Endpoint) (charmEndpoint, error) {
	r, err := v.findRelated(e.String())
	if err != nil {
		return charmEndpoint{}, err
	}
	candidates, err := r.candidateEndpoints(e.String())
	if err != nil {
		return charmEndpoint{}, err
	}

	// "SERVICE:RELATION" has only one candidate, since a charm's relations have different names.
	return candidates[0], nil
}

// findRelated reads the service in text, which is "SERVICE" or "SERVICE:RELATION", and the service's charm.
// It returns ErrNotFound if the service does not exist, and ErrDead if it is not alive.
func (v *View) findRelated(text string) (Related, error) {
	service, _, _ := strings.Cut(text, ":")
	s, err := v.AliveService(service)
	if err != nil {
		return Related{}, err
	}
	ch, err := v.Charm(s.Charm)
	return Related{s, &ch.Meta}, err
}

// candidateEndpoints lists the endpoints that "SERVICE" or "SERVICE:RELATION" can mean: without a relation's name,
// all endpoints of the charm. It returns ErrNotFound instead of an empty list.
func (r Related) candidateEndpoints(text string) ([]charmEndpoint, error) {
	service, name, named := strings.Cut(text, ":")
	var out []charmEndpoint
	for _, rel := range r.Meta.Relations() {
		if named && rel.Name != name {
			continue
		}

		_, explicit := r.Meta.Declared[rel.Name]
		out = append(out, charmEndpoint{
			Endpoint:      Endpoint{Service: service, Name: rel.Name, Role: rel.Role},
			interfaceName: rel.Interface,
			scope:         rel.Scope,
			series:        r.Service.Series,
			implied:       !explicit,
			subordinate:   r.Service.Subordinate,
			limit:         relationLimit(rel, r.Service),
		})
	}

	if len(out) == 0 {
		return nil, refuse(ErrNotFound, "application %q has no relation %q: it has %s", service, name,
			charmRelationNames(r.Meta))
	}

	return out, nil
}

// charmRelationNames lists the names of all relations of a charm, for an error.
func charmRelationNames(m *charm.Meta) string {
	var names []string
	for _, rel := range m.Relations() {
		names = append(names, rel.Name)
	}
	return strings.Join(names, ", ")
}

// InferEndpoints finds the only pair of endpoints by which a and b can be related. Each of a and b is
// "SERVICE" or "SERVICE:RELATION". A pair matches if one endpoint provides the interface that the other
// requires. The implied endpoint juju-info counts only if nothing else matches. If no pair matches, or
// several do, the error lists the candidates.
func (v *View) InferEndpoints(a, b string) ([]Endpoint, error) {
	return InferEndpoints(v.findRelated, a, b)
}

// InferEndpoints is like [View.InferEndpoints], but finds the services with the function find.
func InferEndpoints(find func(text string) (Related, error), a, b string) (_ []Endpoint, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot relate %q and %q: %w", a, b, err)
		}
	}()

	var sides [2][]charmEndpoint
	for i, text := range []string{a, b} {
		r, err := find(text)
		if err != nil {
			return nil, err
		}
		if sides[i], err = r.candidateEndpoints(text); err != nil {
			return nil, err
		}
	}

	return inferPair(sides[0], sides[1])
}

// inferPair returns the only pair of endpoints, one from each of the two lists, that can be related to each
// other. If there are pairs of endpoints that the charms declare, pairs with implied endpoints do not count. It
// returns an error if there is no pair, or more than one. Neither list can be empty.
func inferPair(as, bs []charmEndpoint) ([]Endpoint, error) {
	var explicit, all [][]Endpoint
	for _, a := range as {
		for _, b := range bs {
			if !a.canRelateTo(b) {
				continue
			}

			all = append(all, []Endpoint{a.Endpoint, b.Endpoint})
			if !a.implied && !b.implied {
				explicit = append(explicit, []Endpoint{a.Endpoint, b.Endpoint})
			}
		}
	}

	switch {
	case len(explicit) == 1:
		return explicit[0], nil
	case len(explicit) == 0 && len(all) == 1:
		return all[0], nil
	case len(all) == 0 && as[0].Service == bs[0].Service:
		return nil, errors.New("an application cannot be related to itself")
	case len(all) == 0:
		return nil, fmt.Errorf("neither application provides an interface that the other requires: %s; %s",
			describeEndpoints(as), describeEndpoints(bs))
	}

	return nil, fmt.Errorf("ambiguous: want one of %s", describePairs(all))
}

// describeEndpoints describes the endpoints of one service, for an error. It leaves out the implied juju-info,
// unless that is the only one. The list cannot be empty.
func describeEndpoints(endpoints []charmEndpoint) string {
	var parts []string
	for _, e := range endpoints {
		if !e.implied || len(endpoints) == 1 {
			parts = append(parts, fmt.Sprintf("%s (%s %s)", e.Name, roleWord(e.Role), e.interfaceName))
		}
	}

	if len(parts) == 0 {
		parts = []string{"nothing"}
	}
	return fmt.Sprintf("%s has %s", endpoints[0].Service, strings.Join(parts, ", "))
}

// roleWord returns the name of the role in metadata.yaml.
func roleWord(r charm.Role) string {
	if r == charm.Consumes {
		return "requires"
	}
	return string(r)
}

// describePairs lists pairs of endpoints as an operator can give them to juju relate, for an error.
func describePairs(pairs [][]Endpoint) string {
	var texts []string
	for _, p := range pairs {
		texts = append(texts, fmt.Sprintf("%q", p[0].String()+" "+p[1].String()))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// FindRelation finds the existing relation between a and b, each "SERVICE" or "SERVICE:RELATION". It returns
// ErrNotFound if there is no such relation, or if the service of a does not exist. If there are several relations,
// it returns an error that lists them.
func (v *View) FindRelation(a, b string) (Relation, error) {
	service, _, _ := strings.Cut(a, ":")
	if _, err := v.Service(service); err != nil {
		return Relation{}, err
	}
	found, err := v.findRelations(service, func(_ int, index relationIndex) bool {
		return matchesEndpoint(a, service, index.Name) && matchesWrittenEndpoint(b, index.Other)
	})

	switch {
	case err != nil:
		return Relation{}, err
	case len(found) == 0:
		return Relation{}, refuse(ErrNotFound, "relation between %q and %q not found", a, b)
	case len(found) == 1:
		return found[0], nil
	}

	return Relation{}, fmt.Errorf("relation between %q and %q is ambiguous: want one of %s",
		a, b, describeRelations(found))
}

// matchesEndpoint reports whether an operator's text, "SERVICE" or "SERVICE:RELATION", can mean the endpoint.
func matchesEndpoint(text, service, name string) bool {
	return text == service || text == service+":"+name
}

// matchesWrittenEndpoint is matchesEndpoint for an endpoint in the form "service:name". An empty endpoint
// never matches.
func matchesWrittenEndpoint(text, endpoint string) bool {
	service, name, ok := strings.Cut(endpoint, ":")
	return ok && matchesEndpoint(text, service, name)
}

// describeRelations lists relations with their endpoints, for an error.
func describeRelations(relations []Relation) string {
	var texts []string
	for _, r := range relations {
		// A peer relation has only one endpoint, which then appears twice.
		texts = append(texts, fmt.Sprintf("%s (%s %s)", r, r.Endpoints[0], r.Endpoints[len(r.Endpoints)-1]))
	}
	return strings.Join(texts, ", ")
}
