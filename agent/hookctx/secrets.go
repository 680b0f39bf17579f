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

// secretCache holds the secrets that the hook has read, with its own changes.
type secretCache struct {
	service record.Index // the index of the unit's service
	byID    map[string]*cachedSecret
}

// cachedSecret is a secret with the hook's own changes. The commit applies these changes again, to the record
// that is then in the store.
type cachedSecret struct {
	record   secret.Record
	readable bool                   // the unit can read the secret
	opened   map[int]secret.Content // the content of opened revisions, by number
	added    bool                   // the hook has added the secret
	changes  []func(r *secret.Record)
	content  secret.Content // the content of the revision that the hook adds, or nil
	removed  []int          // the revisions that the hook removes; 0 stands for the whole secret
}

func (s *cachedSecret) change(f func(r *secret.Record)) {
	f(&s.record)
	s.changes = append(s.changes, f)
}

func (s *cachedSecret) isGone() bool {
	return slices.Contains(s.removed, 0) || len(s.removed) > 0 && len(s.record.Revisions) == 0
}

// loadSecrets reads, at the first call only, all secrets that the unit and its service own or can read.
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
			if _, err := all.add(v, f.Unit, r); err != nil {
				return nil, err
			}
		}

		return all, nil
	})

	return err
}

// add adds a secret to the cache, and determines whether the unit can read it.
func (all *secretCache) add(v *state.View, unit string, r secret.Record) (*cachedSecret, error) {
	var failed error // of the last relation that could not be read
	readable := r.IsReadableBy(unit, func(_ string, g secret.Grant) bool {
		if g.Relation == secret.NoRelation {
			return slices.Contains(all.service.Granted, r.ID)
		}

		// A grant ends with its relation.
		_, err := v.Relation(g.Relation)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			failed = err
		}
		return err == nil
	})
	if failed != nil {
		return nil, failed
	}

	s := &cachedSecret{record: r, readable: readable, opened: map[int]secret.Content{}}
	all.byID[r.ID] = s
	return s, nil
}

// findSecret returns a secret by its id, or by the unit's label if id is empty. It does not check whether the
// unit can read the secret.
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

	s := c.secrets.byID[id]
	if s == nil {
		var err error
		if s, err = c.loadSecret(ctx, id); err != nil {
			return nil, err
		}
	}
	if s.isGone() {
		return nil, fmt.Errorf("secret %q not found", id)
	}
	return s, nil
}

// loadSecret reads a secret that loadSecrets has not read, and adds it to the cache.
func (c *Context) loadSecret(ctx context.Context, id string) (*cachedSecret, error) {
	s, err := view(ctx, c, func(v *state.View) (*cachedSecret, error) {
		r, err := record.Get(v, id)
		if err != nil {
			return nil, err
		}
		return c.secrets.add(v, c.opts.Facts.Unit, r)
	})
	if errors.Is(err, state.ErrDenied) { // a gateway hides the records of other units' secrets
		return nil, hookapi.ErrSecretDenied
	}
	return s, err
}

// findLabelled returns the secret that has this label for the unit, or nil if there is none.
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

// isManaged reports whether the unit manages the secret, or could manage it as the leader of its service.
func (c *Context) isManaged(s *cachedSecret) bool {
	return s.added || s.record.IsOwn(c.opts.Facts.Unit) &&
		(s.record.Owner.Service == "" || slices.Contains(c.secrets.service.Owned, s.record.ID))
}

// findManaged returns a secret that the hook can change. For a secret of the service it returns
// [hookapi.ErrNotLeader] unless the unit leads. The commit of the hook then also requires the leadership.
func (c *Context) findManaged(ctx context.Context, id string) (*cachedSecret, error) {
	s, err := c.findSecret(ctx, id, "")
	if err != nil {
		return nil, err
	}
	if !c.isManaged(s) {
		return nil, hookapi.ErrSecretDenied
	}

	if s.record.Owner.Service != "" {
		if err := c.requireLeader(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// AddSecret creates a secret of the unit, or of its service, and returns the secret's id. Only the leader can
// create a secret of the service.
func (c *Context) AddSecret(ctx context.Context, ofUnit bool, change hookapi.SecretChange) (id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	f := c.opts.Facts
	if err := c.loadSecrets(ctx); err != nil {
		return "", err
	}

	owner := secret.Owner{Unit: f.Unit}
	if !ofUnit {
		owner = secret.Owner{Service: f.Service}
		if err := c.requireLeader(ctx); err != nil {
			return "", err
		}
	}

	// Fail now if the commit could not seal the secret.
	if _, err := secret.SealerOf(ctx, c.opts.SecretKeys); err != nil {
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

// SetSecret changes a secret that the unit manages.
func (c *Context) SetSecret(ctx context.Context, id string, change hookapi.SecretChange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.findManaged(ctx, id)
	if err != nil {
		return err
	}

	return c.applySecretChange(ctx, s, change)
}

// applySecretChange applies the change to the cached secret, and keeps the change for the commit.
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

// setContent sets the content of the revision that the hook adds. A hook that sets the content several times
// adds one revision, with the last content. Content that equals the latest revision adds none.
func (c *Context) setContent(ctx context.Context, s *cachedSecret, content secret.Content, now time.Time) error {
	if content == nil {
		return nil
	}
	if err := content.Check(); err != nil {
		return err
	}

	if s.content == nil {
		same, err := c.isLatestContent(ctx, s, content)
		if err != nil || same {
			return err
		}
		s.change(func(r *secret.Record) { r.AddRevision(now) })
	}

	s.content = content
	s.opened[s.record.Latest] = content
	return nil
}

// isLatestContent reports whether the secret's latest revision has this content.
func (c *Context) isLatestContent(ctx context.Context, s *cachedSecret, content secret.Content) (bool, error) {
	if s.record.Latest == 0 {
		return false, nil
	}
	latest, err := c.openSecret(ctx, s, s.record.Latest)
	if errors.Is(err, state.ErrNotFound) {
		// Another unit has removed the revision.
		return false, nil
	}
	if err != nil {
		return false, err
	}

	return latest.Equal(content), nil
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
	if errors.Is(err, state.ErrDenied) { // the grant was revoked since the record was read
		return nil, hookapi.ErrSecretDenied
	}
	if err != nil {
		return nil, err
	}

	s.opened[revision] = content
	return content, nil
}

// SecretContent returns the content of the revision that the unit tracks. At its first call for a secret, the
// unit begins to track the latest revision. With Peek, SecretContent returns the latest revision without
// tracking it. With Refresh, the unit also begins to track it. A label in the query becomes the unit's label for
// the secret.
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

	newLabel := ""
	if labelled == nil {
		newLabel = q.Label
	}
	begins := !isConsumer && !q.Peek
	moves := isConsumer && tracked != consumer.Revision
	if newLabel != "" || begins || moves {
		s.track(unit, tracked, newLabel)
	}

	return maps.Clone(content), nil
}

// track records that the unit tracks a revision of the secret and, unless label is empty, the unit's label for it.
func (s *cachedSecret) track(unit string, revision int, label string) {
	// If the hook adds the revision itself, only the commit knows the revision's number.
	isOwn := s.content != nil && revision == s.record.Latest
	s.change(func(r *secret.Record) {
		if isOwn {
			revision = r.Latest
		}
		r.Track(unit, revision, label)
	})
}
