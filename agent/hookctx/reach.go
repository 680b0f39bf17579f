package hookctx

import (
	"context"
	"fmt"
	"slices"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// loadOwnRelation loads a relation whose settings the hook can read and write. A hook reaches the relations of its
// own service, and an operator reaches all relations of the environment. It returns
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

// checkReach returns the error that loadOwnRelation would return. For the hook's own relation it returns nil
// without reading anything.
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

// walksAnywhere reports whether the hook can list the members of other services' relations. Operators can do
// this, and so can classic charms, which explore the topology in this way.
func (c *Context) walksAnywhere() bool {
	return c.opts.Facts.Operator || c.opts.Facts.Dialect != hookapi.Modern
}

// mayWalk reports whether the hook can list the members of this relation.
func (c *Context) mayWalk(r state.Relation) bool {
	if c.walksAnywhere() || r.ID == c.opts.Facts.Relation {
		return true
	}
	_, own := r.Endpoint(c.opts.Facts.Service)
	return own
}

// checkServiceRead returns [hookapi.ErrNotLeader] if the hook cannot read the service's own settings in r.
// Only the leader can read the settings of its own service. In a peer relation all units can read them, since
// the leader writes them for its peers. Units of the remote service can also read them.
func (c *Context) checkServiceRead(ctx context.Context, r hookapi.Relation, service string) error {
	f := c.opts.Facts
	isPeer := len(r.Ends) == 1
	if f.Operator || service != f.Service || isPeer {
		return nil
	}
	return c.checkLeader(ctx)
}

func relationNotFound(id int) error {
	return fmt.Errorf("relation %d: %w", id, hookapi.ErrRelationNotFound)
}
