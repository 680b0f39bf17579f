package hookctx

import (
	"context"
	"fmt"
	"slices"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// loadOwnRelation loads a relation whose settings the hook can read and write. A hook reaches the relations
// of its own service, and an operator reaches all relations of the environment. It returns
// [hookapi.ErrRelationNotFound] for any other relation, and for a relation that does not exist.
func (c *Context) loadOwnRelation(ctx context.Context, id int) (hookapi.Relation, error) {
	r, err := c.loadRelation(ctx, id)
	if err != nil {
		return r, err
	}
	if !c.opts.Facts.Operator && !c.isOwn(r) {
		return hookapi.Relation{}, relationNotFound(id)
	}

	return r, nil
}

// checkReach returns nil if the hook can read and write settings in the relation, and otherwise the error of
// loadOwnRelation. For the hook's own relation it does not read the store.
func (c *Context) checkReach(ctx context.Context, id int) error {
	if id == c.opts.Facts.Relation {
		return nil
	}
	_, err := c.loadOwnRelation(ctx, id)
	return err
}

// isOwn reports whether the hook's own service is an endpoint of a relation.
func (c *Context) isOwn(r hookapi.Relation) bool {
	if r.ID == c.opts.Facts.Relation {
		return true
	}
	return slices.ContainsFunc(r.Ends, func(e hookapi.End) bool { return e.Service == c.opts.Facts.Service })
}

// canListAllMembers reports whether the hook can list the members of all relations, including those of other
// services. Operators can do this. Classic charms can also do this, since they explore the topology in this
// way.
func (c *Context) canListAllMembers() bool {
	return c.opts.Facts.Operator || c.opts.Facts.Dialect != hookapi.Modern
}

// canListMembers reports whether the hook can list the members of this relation.
func (c *Context) canListMembers(r state.Relation) bool {
	if c.canListAllMembers() || r.ID == c.opts.Facts.Relation {
		return true
	}
	_, isOwn := r.Endpoint(c.opts.Facts.Service)
	return isOwn
}

// checkServiceRead returns [hookapi.ErrNotLeader] if the hook cannot read the settings that a service has set
// for the whole service in relation r. Operators can read all of these settings. A unit can always read those
// of the remote service. It can read those of its own service only as the leader, except in a peer relation.
// There the leader sets them for its peers.
func (c *Context) checkServiceRead(ctx context.Context, r hookapi.Relation, service string) error {
	f := c.opts.Facts
	isPeer := len(r.Ends) == 1
	if f.Operator || service != f.Service || isPeer {
		return nil
	}
	return c.checkLeader(ctx)
}

// relationNotFound returns [hookapi.ErrRelationNotFound] with the relation's id.
func relationNotFound(id int) error {
	return fmt.Errorf("relation %d: %w", id, hookapi.ErrRelationNotFound)
}
