package hookctx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/charm"
)

// Relation describes a relation as it was when the hook first needed it. The hook's own relation has the remote
// members with which the hook began, and is described even if it is gone from the store. Relation returns
// [hookapi.ErrRelationNotFound] for any other relation that does not exist, or that the hook cannot see.
func (c *Context) Relation(ctx context.Context, id int) (hookapi.Relation, error) {
	return answer(ctx, c, func() (hookapi.Relation, error) {
		load := c.loadOwnRelation
		if c.canListAllMembers() {
			load = c.loadRelation
		}

		r, err := load(ctx, id)
		return cloneRelation(r), err
	})
}

// loadRelation returns a relation as it was at the first call. The implied relation, which the hook concerns, has
// the members with which the hook began. loadRelation returns it even if it is gone from the store. It returns
// [hookapi.ErrRelationNotFound] for any other relation that does not exist.
func (c *Context) loadRelation(ctx context.Context, id int) (hookapi.Relation, error) {
	if r, ok := c.relations[id]; ok {
		return r, nil
	}
	r, err := view(ctx, c, func(v *state.View) (hookapi.Relation, error) {
		return readRelation(v, id, c.opts.Facts.Unit)
	})

	isImplied := id == c.opts.Facts.Relation
	if errors.Is(err, state.ErrNotFound) {
		if !isImplied {
			return r, relationNotFound(id)
		}
		r = c.vanishedRelation()
		err = nil
	}
	if err != nil {
		return r, err
	}

	if isImplied {
		c.setImpliedMembers(&r)
	}
	c.relations[id] = r
	return r, nil
}

// readRelation returns a relation with the members that the unit sees. In container scope, these are only the
// members with the same principal as the unit. A unit that is not a member sees all members.
func readRelation(v *state.View, id int, unit string) (hookapi.Relation, error) {
	stored, err := v.Relation(id)
	if err != nil {
		return hookapi.Relation{}, err
	}
	members, err := v.Members(id)
	if err != nil {
		return hookapi.Relation{}, err
	}

	principal := principalOf(members, unit) // empty in global scope
	r := hookapi.Relation{ID: id, Interface: stored.Interface, Scope: string(stored.Scope)}
	for _, ep := range stored.Endpoints {
		end := hookapi.End{Service: ep.Service, Name: ep.Name, Role: hookapi.Role(ep.Role)}
		for _, m := range members {
			isAtEnd := serviceOf(m.Unit) == ep.Service
			isVisible := principal == "" || m.Principal == principal
			if isAtEnd && isVisible {
				end.Units = append(end.Units, m.Unit)
			}
		}

		charm.SortUnits(end.Units)
		r.Ends = append(r.Ends, end)
	}

	return r, nil
}

// principalOf returns the unit's principal in a relation of container scope. It returns an empty string for a
// relation of global scope, and for a unit that is not a member.
func principalOf(members []state.Member, unit string) string {
	i := slices.IndexFunc(members, func(m state.Member) bool { return m.Unit == unit })
	if i < 0 {
		return ""
	}
	return members[i].Principal
}

// vanishedRelation describes the hook's relation, which is gone from the store, by the hook's options. The roles
// are unknown and stay empty, except in a peer relation.
func (c *Context) vanishedRelation() hookapi.Relation {
	f := c.opts.Facts
	own := hookapi.End{Service: f.Service, Name: c.opts.RelationName}
	if f.RemoteService == f.Service {
		own.Role = hookapi.Peers
		return hookapi.Relation{ID: f.Relation, Ends: []hookapi.End{own}}
	}

	return hookapi.Relation{ID: f.Relation, Ends: []hookapi.End{own, {Service: f.RemoteService}}}
}

// setImpliedMembers replaces the members of the implied relation with the local unit and the members in the
// facts, with which the hook began. At the local end it also keeps the stored units, unless the relation is a peer
// relation or broken.
func (c *Context) setImpliedMembers(r *hookapi.Relation) {
	f := c.opts.Facts
	for i, end := range r.Ends {
		var units []string
		if end.Service == f.Service && end.Service != f.RemoteService && !f.Broken {
			units = end.Units
		}

		for _, unit := range append([]string{f.Unit}, f.Members...) {
			if serviceOf(unit) == end.Service && !slices.Contains(units, unit) {
				units = append(units, unit)
			}
		}

		charm.SortUnits(units)
		r.Ends[i].Units = units
	}
}

// RelationIDs returns the ids of the relations that a unit is in, or that a service has, as they were at the
// first call for that name. It leaves out relations that the hook cannot see. It returns
// [hookapi.ErrUnknownUnit] if there is no unit or service of that name.
func (c *Context) RelationIDs(ctx context.Context, name string) ([]int, error) {
	return answer(ctx, c, func() ([]int, error) {
		if ids, ok := c.ids[name]; ok {
			return slices.Clone(ids), nil
		}
		ids, err := view(ctx, c, func(v *state.View) ([]int, error) { return c.readRelationIDs(v, name) })
		if err != nil {
			return nil, rewordNotFound(err, name)
		}

		c.ids[name] = ids
		return slices.Clone(ids), nil
	})
}

// rewordNotFound replaces [state.ErrNotFound] for a unit or service with [hookapi.ErrUnknownUnit]. It returns
// other errors unchanged.
func rewordNotFound(err error, name string) error {
	if errors.Is(err, state.ErrNotFound) {
		return fmt.Errorf("%q: %w", name, hookapi.ErrUnknownUnit)
	}
	return err
}

// readRelationIDs returns the ids of the relations that a unit is in, or that a service has, and that the
// hook can see. It returns [state.ErrNotFound] if there is no unit or service of that name.
func (c *Context) readRelationIDs(v *state.View, name string) ([]int, error) {
	if err := v.PrefetchRelations(name); err != nil {
		return nil, err
	}
	if err := checkExists(v, name); err != nil {
		return nil, err
	}
	relations, err := v.ServiceRelations(serviceOf(name))
	if err != nil {
		return nil, err
	}

	ids := []int{}
	for _, r := range relations {
		if !c.canListMembers(r) {
			continue
		}
		in, err := c.isIn(v, r.ID, name)
		if err != nil {
			return nil, err
		}
		if in {
			ids = append(ids, r.ID)
		}
	}

	slices.Sort(ids)
	return ids, nil
}

// checkExists returns [state.ErrNotFound] unless there is a unit or service of this name.
func checkExists(v *state.View, name string) error {
	if strings.Contains(name, "/") {
		_, err := v.Unit(name)
		return err
	}
	_, err := v.Service(name)
	return err
}

// isIn reports whether a unit or service is in a relation of serviceOf(name). A service is in all of its
// relations. A unit is in a relation if it is a member, and the hook's own unit is always in the hook's relation.
func (c *Context) isIn(v *state.View, relation int, name string) (in bool, err error) {
	isImplied := relation == c.opts.Facts.Relation && name == c.opts.Facts.Unit
	if isImplied || !strings.Contains(name, "/") {
		return true, nil
	}
	_, in, err = v.Member(relation, name)
	return in, err
}

// serviceOf returns the name of a unit's service. It returns the name of a service unchanged.
func serviceOf(unit string) string {
	service, _, _ := strings.Cut(unit, "/")
	return service
}

// cloneRelation returns a copy of r that shares no slice with r.
func cloneRelation(r hookapi.Relation) hookapi.Relation {
	r.Ends = slices.Clone(r.Ends)
	for i := range r.Ends {
		r.Ends[i].Units = slices.Clone(r.Ends[i].Units)
	}
	return r
}
