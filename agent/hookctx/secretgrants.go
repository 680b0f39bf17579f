package hookctx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secret/record"
)

// GrantSecret lets the remote service of a relation read the secret. If g names a unit, only that unit of the
// remote service can read the secret. In a peer relation, the unit's own service counts as the remote service.
// The grant takes effect when the hook succeeds. GrantSecret returns an error if the relation is not one of the
// unit's service, or if g names a unit of a different service than the remote one.
func (c *Context) GrantSecret(ctx context.Context, id string, g hookapi.SecretGrant) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	s, err := c.findManaged(ctx, id)
	if err != nil {
		return err
	}
	relation, err := c.loadOwnRelation(ctx, g.Relation)
	if err != nil {
		return err
	}

	// loadOwnRelation also returns relations of other services to an operator.
	own := c.opts.Facts.Service
	isOwnRelation := false
	g.Service = own // a peer relation has no other service
	for _, end := range relation.Ends {
		if end.Service == own {
			isOwnRelation = true
		} else {
			g.Service = end.Service
		}
	}

	isRemoteUnit := g.Unit == "" || strings.HasPrefix(g.Unit, g.Service+"/")
	if !isOwnRelation || !isRemoteUnit {
		return fmt.Errorf("cannot grant secret %q to unit %q: relation %d is between applications %q and %q",
			id, g.Unit, g.Relation, own, g.Service)
	}

	s.change(func(r *secret.Record) { r.AddGrant(secret.Grant(g)) })
	return nil
}

// RevokeSecret removes the grants of a secret that match g. In g, an empty Service or Unit, or
// [hookapi.NoRelation], matches every grant. The grants end when the hook succeeds.
func (c *Context) RevokeSecret(ctx context.Context, id string, g hookapi.SecretGrant) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.findManaged(ctx, id)
	if err != nil {
		return err
	}

	s.change(func(r *secret.Record) { r.RemoveGrants(secret.Grant(g)) })
	return nil
}

// RemoveSecret removes a revision of a secret, or the whole secret if revision is 0. The removal takes effect
// when the hook succeeds. If the secret or revision is already gone, RemoveSecret returns nil, as Juju has
// done since 3.6.11: a charm cannot know whether another unit has removed the secret or revision first.
func (c *Context) RemoveSecret(ctx context.Context, id string, revision int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.loadSecrets(ctx); err != nil {
		return err
	}
	cached := c.secrets.byID[id]
	if cached != nil && (cached.isGone() || slices.Contains(cached.removed, revision)) {
		return nil // this hook has already removed it
	}

	s, err := c.findManaged(ctx, id)
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, exists := s.record.Revisions[revision]; revision != 0 && !exists {
		return nil
	}

	// Until the commit, a revision that the hook has added to an existing secret only has a provisional number, which
	// another revision may have then. So the number must not be kept for the commit.
	if s.isAddedByHook(revision) && !s.added {
		s.dropAddedRevision()
		return nil
	}

	// A secret that the hook itself has added has no other revision. Without it, the commit skips the secret.
	s.removed = append(s.removed, revision)
	delete(s.record.Revisions, revision) // does nothing for the whole secret
	return nil
}

// SecretInfos describes the secrets that the unit manages, sorted by id: its own and, if the unit leads, those of
// its service.
func (c *Context) SecretInfos(ctx context.Context) (infos []hookapi.SecretInfo, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.loadSecrets(ctx); err != nil {
		return nil, err
	}

	for _, id := range slices.Sorted(maps.Keys(c.secrets.byID)) {
		s := c.secrets.byID[id]
		if s.isGone() || !c.isManaged(s) {
			continue
		}

		// Only the leader manages the secrets of its service.
		if s.record.Owner.Service != "" {
			leads, err := c.readIsLeader(ctx)
			if err != nil {
				return nil, err
			}
			if !leads {
				continue
			}
		}

		infos = append(infos, s.describe(id))
	}

	return infos, nil
}

// describe returns the description of a secret, with the hook's own changes applied.
func (s *cachedSecret) describe(id string) hookapi.SecretInfo {
	r := s.record
	info := hookapi.SecretInfo{
		ID:          id,
		Label:       r.Label,
		Description: r.Description,
		Revision:    r.Latest,
		OfUnit:      r.Owner.Unit != "",
		Rotation:    r.Rotate,
		Expires:     r.Revisions[r.Latest].Expires,
	}

	// The rotation time of a new secret is known only after the commit.
	if !s.added {
		info.Rotates = r.RotateAt
	}
	for _, g := range r.Grants {
		info.Grants = append(info.Grants, hookapi.SecretGrant(g))
	}

	return info
}

// addSecrets adds the hook's changes of secrets to the transaction. It skips secrets that are gone from the
// store, and secrets that the hook has both added and removed.
func (c *Context) addSecrets(ctx context.Context, tx *state.Tx) error {
	if c.secrets == nil {
		return nil
	}

	for _, id := range slices.Sorted(maps.Keys(c.secrets.byID)) {
		s := c.secrets.byID[id]
		isUnchanged := len(s.changes) == 0 && len(s.removed) == 0
		neverStored := s.added && s.isGone()
		if isUnchanged || neverStored {
			continue
		}

		if err := c.commitSecret(ctx, tx, id, s); err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
	}

	return nil
}

// commitSecret applies the hook's changes to a secret's stored record, seals the secret's new content, and
// removes the revisions that the hook has removed. It returns [state.ErrNotFound] if the secret is gone from
// the store.
func (c *Context) commitSecret(ctx context.Context, tx *state.Tx, id string, s *cachedSecret) error {
	// A secret that the hook has added is not in the store, so its changes apply to a new record.
	r := secret.Record{ID: id, Origin: s.record.Origin, Owner: s.record.Owner, Created: s.record.Created}
	if !s.added {
		var err error
		if r, err = record.Get(tx.View, id); err != nil {
			return err
		}
	}

	for _, change := range s.changes {
		change(&r)
	}

	// Do not store the new content of a secret that the hook has then removed.
	if s.content != nil && !s.isGone() {
		sealer, err := secret.SealerOf(ctx, c.opts.SecretKeys)
		if err != nil {
			return err
		}
		if err := record.PutContent(tx, sealer, r, s.content); err != nil {
			return err
		}
	}
	if err := record.Put(tx, r); err != nil {
		return err
	}

	for _, revision := range s.removed {
		remaining, err := record.Remove(tx, r, revision)
		if err != nil {
			return err
		}
		r = remaining
	}

	return nil
}
