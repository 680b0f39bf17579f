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

// GrantSecret lets the remote service of a relation, or one of its units, read the secret. In a peer relation the
// remote service is the unit's own.
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

	own := c.opts.Facts.Service
	isIn := false
	g.Service = own // remains in a peer relation
	for _, e := range relation.Ends {
		if e.Service == own {
			isIn = true
		} else {
			g.Service = e.Service
		}
	}

	if !isIn || g.Unit != "" && !strings.HasPrefix(g.Unit, g.Service+"/") {
		return fmt.Errorf("cannot grant secret %q to unit %q: relation %d is between applications %q and %q",
			id, g.Unit, g.Relation, own, g.Service)
	}

	s.change(func(r *secret.Record) { r.AddGrant(secret.Grant(g)) })
	return nil
}

// RevokeSecret removes the grants of a secret that match g. An empty field of g matches every grant.
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

// RemoveSecret removes a revision of a secret, or the whole secret if revision is 0. If the secret or
// revision is already gone, it returns nil, as Juju has done from 3.6.11 on. A charm cannot know whether
// another unit has removed it first.
func (c *Context) RemoveSecret(ctx context.Context, id string, revision int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.loadSecrets(ctx); err != nil {
		return err
	}
	if s := c.secrets.byID[id]; s != nil && (s.isGone() || slices.Contains(s.removed, revision)) {
		return nil
	}

	s, err := c.findManaged(ctx, id)
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, there := s.record.Revisions[revision]; revision != 0 && !there {
		return nil
	}

	s.removed = append(s.removed, revision)
	delete(s.record.Revisions, revision)
	return nil
}

// SecretInfos describes the secrets that the unit manages.
func (c *Context) SecretInfos(ctx context.Context) (infos []hookapi.SecretInfo, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.loadSecrets(ctx); err != nil {
		return nil, err
	}

	for _, id := range slices.Sorted(maps.Keys(c.secrets.byID)) {
		s := c.secrets.byID[id]
		r := s.record
		manages := c.isManaged(s) && !s.isGone()
		if manages && r.Owner.Service != "" {
			if manages, err = c.readIsLeader(ctx); err != nil {
				return nil, err
			}
		}
		if !manages {
			continue
		}

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
		infos = append(infos, info)
	}

	return infos, nil
}

// addSecrets adds the hook's changes of secrets to the transaction. It skips secrets that are gone.
func (c *Context) addSecrets(ctx context.Context, tx *state.Tx) error {
	if c.secrets == nil {
		return nil
	}

	for _, id := range slices.Sorted(maps.Keys(c.secrets.byID)) {
		s := c.secrets.byID[id]
		if len(s.changes)+len(s.removed) == 0 || s.added && s.isGone() {
			continue
		}
		if err := c.commitSecret(ctx, tx, id, s); err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
	}

	return nil
}

// commitSecret applies the hook's changes to a secret's stored record, seals its new content, and removes
// the revisions that the hook removed.
func (c *Context) commitSecret(ctx context.Context, tx *state.Tx, id string, s *cachedSecret) error {
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
		left, err := record.Remove(tx, r, revision)
		if err != nil {
			return err
		}
		r = left
	}

	return nil
}
