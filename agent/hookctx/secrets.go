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

// secretCache holds the secrets that the hook has read, with the hook's own changes.
type secretCache struct {
	service record.Index // the index of the unit's service
	byID    map[string]*cachedSecret
}

// cachedSecret is a secret with the hook's own changes. The hook's commit applies these changes again, to the
// record that is in the store at that time.
type cachedSecret struct {
	record   secret.Record            // with the hook's changes
	readable bool                     // the unit can read the secret
	opened   map[int]secret.Content   // the content of opened revisions, by number
	added    bool                     // the hook has added the secret
	changes  []func(r *secret.Record) // the hook's changes, for the commit
	content  secret.Content           // the content of the revision that the hook adds, or nil
	removed  []int                    // the revisions that the hook removes; 0 stands for the whole secret
}

// change applies f to the cached record, and keeps f for the commit.
func (s *cachedSecret) change(f func(r *secret.Record)) {
	f(&s.record)
	s.changes = append(s.changes, f)
}

// isAddedByHook reports whether the hook adds the revision, and has not removed it.
func (s *cachedSecret) isAddedByHook(revision int) bool {
	return s.content != nil && revision == s.record.Latest
}

// dropAddedRevision removes the revision that the hook adds, with its content. The revision's number becomes
// free again. Otherwise the secret's readers would run secret-changed for a revision that does not exist.
func (s *cachedSecret) dropAddedRevision() {
	delete(s.opened, s.record.Latest)
	s.content = nil
	s.change((*secret.Record).DropRevision)
}

// isGone reports whether the hook has removed the secret: as a whole, or with its last revision.
func (s *cachedSecret) isGone() bool {
	if slices.Contains(s.removed, 0) {
		return true
	}
	return len(s.removed) > 0 && len(s.record.Revisions) == 0
}

// loadSecrets fills c.secrets at its first call. It reads the secrets that the unit and its service own, that the
// unit tracks, and that operators have granted to the service. loadSecret reads others when they are needed.
// loadSecrets returns an error if the hook has ended or ctx is done.
func (c *Context) loadSecrets(ctx context.Context) error {
	if err := c.checkOpen(ctx); err != nil {
		return err
	}
	f := c.opts.Facts

	_, err := loadOnce(ctx, c, &c.secrets, func(v *state.View) (*secretCache, error) {
		unitIndex, err := record.IndexOf(v, secret.Owner{Unit: f.Unit})
		if err != nil {
			return nil, err
		}

		serviceIndex, err := record.IndexOf(v, secret.Owner{Service: f.Service})
		if err != nil {
			return nil, err
		}
		ids := slices.Concat(unitIndex.Owned, unitIndex.Consumed, serviceIndex.Owned, serviceIndex.Granted)
		records, err := record.Read(v, ids)
		if err != nil {
			return nil, err
		}

		cache := &secretCache{service: serviceIndex, byID: map[string]*cachedSecret{}}
		for _, r := range records {
			if _, err := cache.add(v, f.Unit, r); err != nil {
				return nil, err
			}
		}

		return cache, nil
	})

	return err
}

// add adds a secret to the cache, and determines whether the unit can read the secret.
func (sc *secretCache) add(v *state.View, unit string, r secret.Record) (*cachedSecret, error) {
	var readErr error // of the last relation that could not be read
	// IsReadableBy calls isValid only for this unit, so isValid ignores its first parameter.
	isValid := func(_ string, g secret.Grant) bool {
		if g.Relation == secret.NoRelation { // granted by operators
			return slices.Contains(sc.service.Granted, r.ID)
		}

		// A grant ends with its relation.
		_, err := v.Relation(g.Relation)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			readErr = err
		}
		return err == nil
	}

	readable := r.IsReadableBy(unit, isValid)
	if readErr != nil {
		return nil, readErr
	}

	s := &cachedSecret{record: r, readable: readable, opened: map[int]secret.Content{}}
	sc.byID[r.ID] = s
	return s, nil
}

// findSecret returns a secret by its id. If id is empty, it returns the secret that has this label for the
// unit. It does not check whether the unit can read the secret. It returns an error if there is no such secret, or
// if the hook has removed it.
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

// findLabelled returns the secret that has this label for the unit, as its owner or as a consumer. It returns
// nil if there is none, or if label is empty.
func (c *Context) findLabelled(label string) *cachedSecret {
	if label == "" {
		return nil
	}

	unit := c.opts.Facts.Unit
	for _, id := range slices.Sorted(maps.Keys(c.secrets.byID)) {
		s := c.secrets.byID[id]
		if s.isGone() {
			continue
		}

		consumer, isConsumer := s.record.Consumers[unit]
		hasConsumerLabel := isConsumer && consumer.Label == label
		hasOwnerLabel := s.record.IsOwn(unit) && s.record.Label == label
		if hasConsumerLabel || hasOwnerLabel {
			return s
		}
	}

	return nil
}

// isManaged reports whether the unit manages the secret, or could manage it as the leader of its service.
func (c *Context) isManaged(s *cachedSecret) bool {
	if s.added {
		return true // the index was read before the hook added the secret
	}
	if !s.record.IsOwn(c.opts.Facts.Unit) {
		return false
	}

	// The owner can be a removed service with the same name. Owned contains only this service's secrets.
	return s.record.Owner.Service == "" || slices.Contains(c.secrets.service.Owned, s.record.ID)
}

// findManaged returns a secret that the hook can change. It returns [hookapi.ErrSecretDenied] for other
// secrets. Only the leader can change a secret of the service: for other units findManaged returns
// [hookapi.ErrNotLeader], and the hook's commit fails if the unit no longer leads.
func (c *Context) findManaged(ctx context.Context, id string) (*cachedSecret, error) {
	s, err := c.findSecret(ctx, id, "") // only by its id
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
// create a secret of the service. The secret is stored when the hook succeeds.
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

// SetSecret changes a secret that the unit manages. The change takes effect when the hook succeeds.
func (c *Context) SetSecret(ctx context.Context, id string, change hookapi.SecretChange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.findManaged(ctx, id)
	if err != nil {
		return err
	}

	return c.applySecretChange(ctx, s, change)
}

// applySecretChange applies the change to the cached secret, and keeps the change for the commit. Empty fields of
// the change leave the secret's fields as they are. applySecretChange returns an error if the unit already uses
// the label for a different secret.
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

// setContent gives the secret new content. It adds a revision for the content, unless the content equals the latest
// revision's content. If the hook has already added a revision, setContent only replaces that revision's content. A
// nil content changes nothing.
func (c *Context) setContent(ctx context.Context, s *cachedSecret, content secret.Content, now time.Time) error {
	if content == nil {
		return nil
	}
	if err := content.Check(); err != nil {
		return err
	}

	addsRevision := s.content == nil // otherwise the hook has already added one
	if addsRevision {
		same, err := c.isLatestContent(ctx, s, content)
		if err != nil {
			return err
		}
		if same {
			return nil
		}
		s.change(func(r *secret.Record) { r.AddRevision(now) })
	}

	s.content = content
	s.opened[s.record.Latest] = content
	return nil
}

// isLatestContent reports whether the secret's latest revision has this content. It returns false if that
// revision was removed, by the hook itself or in the store.
func (c *Context) isLatestContent(ctx context.Context, s *cachedSecret, content secret.Content) (bool, error) {
	if _, exists := s.record.Revisions[s.record.Latest]; !exists {
		return false, nil
	}
	latest, err := c.openSecret(ctx, s, s.record.Latest)
	if errors.Is(err, state.ErrNotFound) {
		// The revision was removed from the store after the hook had read the secret's record.
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

// SecretContent returns the content of the revision that the unit tracks. Without Peek, a unit that does not track
// the secret begins to track the latest revision. With Refresh, the unit tracks the latest revision from now on.
// With Peek, SecretContent returns the content of the latest revision, and Peek does not change which revision the
// unit tracks. A label in the query becomes the unit's label for the secret. If the label is new, a unit that does
// not track the secret begins to do so, even with Peek.
//
// SecretContent returns [hookapi.ErrSecretDenied] if the unit cannot read the secret, and an error if the unit uses
// the label for a different secret.
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
	toTrack := s.record.Latest
	if isConsumer && !q.Refresh {
		toTrack = consumer.Revision
	}
	toRead := toTrack
	if q.Peek {
		toRead = s.record.Latest
	}

	content, err := c.openSecret(ctx, s, toRead)
	if err != nil {
		return nil, err
	}

	newLabel := ""
	if labelled == nil {
		newLabel = q.Label
	}
	beginsTracking := !isConsumer && !q.Peek
	tracksOther := isConsumer && toTrack != consumer.Revision
	if newLabel != "" || beginsTracking || tracksOther {
		s.track(unit, toTrack, newLabel)
	}

	return maps.Clone(content), nil
}

// track records that the unit tracks a revision of the secret. Unless label is empty, it also records the
// unit's label for the secret.
func (s *cachedSecret) track(unit string, revision int, label string) {
	// If the hook adds the revision itself, only the commit knows the revision's number.
	addedByHook := s.isAddedByHook(revision)
	s.change(func(r *secret.Record) {
		if addedByHook {
			revision = r.Latest
		}
		r.Track(unit, revision, label)
	})
}
