package hookctx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secret/record"
)

// secretCache holds what the hook has read of secrets, and what it has done to them.
type secretCache struct {
	service record.Index
	byID    map[string]*cachedSecret
}

// cachedSecret is a secret with the hook's own changes, which the commit applies anew.
type cachedSecret struct {
	record   secret.Record
	readable bool
	opened   map[int]secret.Content
	added    bool
	changes  []func(r *secret.Record)
	content  secret.Content // of the revision that the hook adds; nil: none
	removed  []int          // revisions; 0: the secret
}

func (s *cachedSecret) change(f func(r *secret.Record)) {
	f(&s.record)
	s.changes = append(s.changes, f)
}

func (s *cachedSecret) isGone() bool {
	return slices.Contains(s.removed, 0) || len(s.removed) > 0 && len(s.record.Revisions) == 0
}

// loadSecrets reads all secrets that the unit and its service own or may read. It reads them at the first
// call only.
func (c *Context) loadSecrets(ctx context.Context) (err error) {
	if err := c.checkOpen(ctx); err != nil {
		return err
	}
	f := c.opts.Facts

	_, err = loadOnce(ctx, c, &c.secrets, func(v *state.View) (*secretCache, error) {
		own, err := record.IndexOf(v, secret.Owner{Unit: f.Unit})
		if err != nil {
			return nil, err
		}

		shared, err := record.IndexOf(v, secret.Owner{Service: f.Service})
		if err != nil {
			return nil, err
		}
		records, err := record.Read(v, slices.Concat(own.Owned, own.Consumed, shared.Owned, shared.Granted))
		if err != nil {
			return nil, err
		}

		all := &secretCache{service: shared, byID: map[string]*cachedSecret{}}
		for _, r := range records {
			if err := all.add(v, f.Unit, r); err != nil {
				return nil, err
			}
		}

		return all, nil
	})

	return err
}

// add adds a secret, and the relations by which the unit may read it.
func (all *secretCache) add(v *state.View, unit string, r secret.Record) (err error) {
	readable := r.IsReadableBy(unit, func(_ string, g secret.Grant) bool {
		if g.Relation == secret.NoRelation {
			return slices.Contains(all.service.Granted, r.ID)
		}

		_, rerr := v.Relation(g.Relation)
		if rerr != nil && !errors.Is(rerr, state.ErrNotFound) {
			err = rerr
		}
		return rerr == nil
	})

	all.byID[r.ID] = &cachedSecret{record: r, readable: readable, opened: map[int]secret.Content{}}
	return err
}

// findSecret returns a secret by its id, or by the unit's label if id is empty. It does not check whether
// the unit may read it.
func (c *Context) findSecret(ctx context.Context, id, label string) (*cachedSecret, error) {
	if err := c.loadSecrets(ctx); err != nil {
		return nil, err
	}
	if id == "" {
		if s := c.findLabelled(label); s != nil {
			return s, nil
		}
		return nil, fmt.Errorf("consumer label %q not found", label)
	}

	if c.secrets.byID[id] == nil {
		_, err := view(ctx, c, func(v *state.View) (r secret.Record, err error) {
			r, err = record.Get(v, id)
			if err != nil {
				return r, err
			}

			err = c.secrets.add(v, c.opts.Facts.Unit, r)
			return r, err
		})
		switch {
		case errors.Is(err, state.ErrDenied): // a gateway does not show the records of others' secrets
			return nil, hookapi.ErrSecretDenied
		case err != nil:
			return nil, err
		}
	}

	if s := c.secrets.byID[id]; !s.isGone() {
		return s, nil
	}

	return nil, fmt.Errorf("secret %q not found", id)
}

// findLabelled returns the secret that the unit knows by the label; nil if there is none.
func (c *Context) findLabelled(label string) *cachedSecret {
	unit := c.opts.Facts.Unit
	for _, id := range slices.Sorted(maps.Keys(c.secrets.byID)) {
		s := c.secrets.byID[id]
		consumer, reads := s.record.Consumers[unit]
		if label != "" && !s.isGone() && (reads && consumer.Label == label ||
			s.record.IsOwn(unit) && s.record.Label == label) {
			return s
		}
	}

	return nil
}

// isManaged reports whether the unit manages the secret, or would if it led its service.
func (c *Context) isManaged(s *cachedSecret) bool {
	return s.added || s.record.IsOwn(c.opts.Facts.Unit) &&
		(s.record.Owner.Service == "" || slices.Contains(c.secrets.service.Owned, s.record.ID))
}

// findManaged returns a secret that the hook may change. If that needs the leadership, the hook's success
// depends on it.
func (c *Context) findManaged(ctx context.Context, id string) (*cachedSecret, error) {
	s, err := c.findSecret(ctx, id, "")
	switch {
	case err != nil:
		// Returned below.
	case !c.isManaged(s):
		err = hookapi.ErrSecretDenied
	case s.record.Owner.Service != "":
		err = c.requireLeader(ctx)
	}

	return s, err
}

// AddSecret creates a secret of the unit, or of its service, and returns the secret's id. Only the leader
// may create one of the service.
func (c *Context) AddSecret(ctx context.Context, ofUnit bool, change hookapi.SecretChange) (id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	f := c.opts.Facts
	owner := secret.Owner{Unit: f.Unit}
	err = c.loadSecrets(ctx)
	if err == nil && !ofUnit {
		owner = secret.Owner{Service: f.Service}
		err = c.requireLeader(ctx)
	}
	if err != nil {
		return "", err
	}

	_, err = secret.SealerOf(ctx, c.opts.SecretKeys) // or nothing could be sealed at the end
	if err != nil {
		return "", err
	}

	now := time.Now().UTC()
	r := secret.Record{ID: secret.NewID(now), Origin: f.Model, Owner: owner, Created: now}
	s := &cachedSecret{record: r, readable: true, added: true, opened: map[int]secret.Content{}}
	if err := c.applySecretChange(ctx, s, change); err != nil {
		return "", err
	}

	c.secrets.byID[r.ID] = s
	return r.ID, nil
}

// SetSecret changes a secret.
func (c *Context) SetSecret(ctx context.Context, id string, change hookapi.SecretChange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.findManaged(ctx, id)
	if err != nil {
		return err
	}

	return c.applySecretChange(ctx, s, change)
}

// applySecretChange applies the change to the secret as this hook sees it, and keeps it for the commit.
func (c *Context) applySecretChange(ctx context.Context, s *cachedSecret, change hookapi.SecretChange) error {
	now := time.Now().UTC()
	if other := c.findLabelled(change.Label); other != nil && other != s {
		return fmt.Errorf("secret with label %q already exists", change.Label)
	}
	if err := c.setContent(ctx, s, change.Content, now); err != nil {
		return err
	}

	s.change(func(r *secret.Record) {
		if change.Label != "" {
			r.Label = change.Label
		}
		if change.Description != "" {
			r.Description = change.Description
		}

		if change.Rotate != "" {
			r.SetRotation(change.Rotate, now)
		}
		if !change.Expires.IsZero() {
			r.SetExpiry(change.Expires)
		}
		r.Updated = now
	})

	return nil
}

// setContent puts all content that the hook sets into one revision.
func (c *Context) setContent(ctx context.Context, s *cachedSecret, content secret.Content, now time.Time) error {
	if content == nil {
		return nil
	}
	if err := content.Check(); err != nil {
		return err
	}

	if s.content == nil {
		if s.record.Latest > 0 {
			same, err := c.openSecret(ctx, s, s.record.Latest)
			if err == nil && same.Equal(content) || err != nil && !errors.Is(err, state.ErrNotFound) {
				return err
			}
		}
		s.change(func(r *secret.Record) { r.AddRevision(now) })
	}

	s.content = content
	s.opened[s.record.Latest] = content
	return nil
}

// openSecret returns the content of a secret's revision. It opens each revision once.
func (c *Context) openSecret(ctx context.Context, s *cachedSecret, revision int) (secret.Content, error) {
	if content, ok := s.opened[revision]; ok {
		return content, nil
	}
	sealer, err := secret.SealerOf(ctx, c.opts.SecretKeys)
	if err != nil {
		return nil, err
	}

	content, err := view(ctx, c, func(v *state.View) (secret.Content, error) {
		return record.Open(v, sealer, s.record, revision)
	})
	switch {
	case errors.Is(err, state.ErrDenied): // it was revoked since the record was read
		return nil, hookapi.ErrSecretDenied
	case err != nil:
		return nil, err
	}

	s.opened[revision] = content
	return content, nil
}

// SecretContent returns the content of the revision that the unit tracks. A unit that asks for the first
// time begins to track the latest. With Peek it reads the latest revision, and with Refresh it tracks the
// latest as well. A label in the query becomes the unit's label of the secret.
func (c *Context) SecretContent(ctx context.Context, q hookapi.SecretQuery) (map[string][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	s, err := c.findSecret(ctx, q.ID, q.Label)
	if err != nil {
		return nil, err
	}
	if !s.readable {
		return nil, hookapi.ErrSecretDenied
	}

	labelled := c.findLabelled(q.Label)
	if labelled != nil && labelled != s {
		return nil, fmt.Errorf("secret with label %q already exists", q.Label)
	}

	unit := c.opts.Facts.Unit
	consumer, isConsumer := s.record.Consumers[unit]
	read := s.record.Latest
	tracked := s.record.Latest
	if isConsumer && !q.Refresh {
		tracked = consumer.Revision
		if !q.Peek {
			read = tracked
		}
	}

	content, err := c.openSecret(ctx, s, read)
	if err != nil {
		return nil, err
	}

	// The commit decides the number of a revision that this hook adds.
	isOwn := s.content != nil && tracked == s.record.Latest

	isLabelNew := q.Label != "" && labelled == nil
	begins := !isConsumer && !q.Peek
	moves := isConsumer && tracked != consumer.Revision
	if isLabelNew || begins || moves {
		s.change(func(r *secret.Record) {
			if isOwn {
				tracked = r.Latest
			}
			label := ""
			if isLabelNew {
				label = q.Label
			}
			r.Track(unit, tracked, label)
		})
	}

	return maps.Clone(content), nil
}
