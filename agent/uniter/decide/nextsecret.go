package decide

import (
	"maps"
	"slices"
	"time"

	"bijou/agent/hook"
	"bijou/state"
	"bijou/state/secret"
)

// Secrets are those that a unit reads or manages.
type Secrets struct {
	Records []secret.Record // by id
	Managed []string        // ids: its own, and its service's if it leads
	Granted []string        // ids of operators' secrets that its service may read
}

// IDs lists the secrets.
func (all Secrets) IDs() (ids []string) {
	for _, r := range all.Records {
		ids = append(ids, r.ID)
	}
	return ids
}

// LabelFor returns the label under which a unit knows a secret; empty if it has none.
func (all Secrets) LabelFor(id, unit string) string {
	for _, r := range all.Records {
		if r.ID == id {
			return r.LabelFor(unit)
		}
	}
	return ""
}

// nextSecretHook returns the next hook about a secret. It returns nil if none is due, with the time when
// one will be (zero: never). Secrets that have changed come first, since their hooks can make more of them
// due.
func (s *Snapshot) nextSecretHook() (step Step, until time.Time) {
	if s.Unit.Life != state.Alive {
		return nil, until
	}

	for _, r := range s.Secrets.Records {
		c, reads := r.Consumers[s.Unit.Name]
		if reads && r.Latest > max(c.Revision, c.Told) && r.IsReadableBy(s.Unit.Name, s.isGrantedBy(r.ID)) {
			return RunHook{hook.ForSecret(hook.SecretChanged, r.ID, r.Latest), FromWorkflow}, until
		}
	}

	for _, r := range s.Secrets.Records {
		if !slices.Contains(s.Secrets.Managed, r.ID) {
			continue
		}

		for _, n := range slices.Sorted(maps.Keys(r.Revisions)) {
			at := r.Revisions[n].DueAt
			if !at.IsZero() && !s.Now.Before(at) {
				return RunHook{hook.ForSecret(hook.SecretExpired, r.ID, n), FromWorkflow}, until
			}
			until = earlierOf(until, at)
		}

		if at := r.RotateAt; !at.IsZero() && !s.Now.Before(at) {
			return RunHook{hook.ForSecret(hook.SecretRotate, r.ID, r.Latest), FromWorkflow}, until
		}

		until = earlierOf(until, r.RotateAt)
		for _, n := range r.Untracked(s.isGrantedBy(r.ID)) {
			if !r.Revisions[n].Obsolete {
				return RunHook{hook.ForSecret(hook.SecretRemove, r.ID, n), FromWorkflow}, until
			}
		}
	}

	return nil, until
}

// isGrantedBy reports whether a grant of the secret still holds for a unit, which, if it is
// another, has to be in the relation.
func (s *Snapshot) isGrantedBy(id string) func(unit string, g secret.Grant) bool {
	return func(unit string, g secret.Grant) bool {
		if g.Relation == secret.NoRelation {
			return slices.Contains(s.Secrets.Granted, id)
		}
		r, there := s.Relations[g.Relation]
		return there && (unit == s.Unit.Name ||
			slices.ContainsFunc(r.Members, func(m state.Member) bool { return m.Unit == unit }))
	}
}

// retryInterval is when a hook about a secret that has changed nothing comes again.
const retryInterval = 5 * time.Minute

// SecretHookDone changes a secret's record after a hook about that secret has run in the unit. Rotation and
// expiry come due again after retryInterval if the hook did not act on them.
func SecretHookDone(r *secret.Record, unit string, h state.Hook, now time.Time) {
	rev, there := r.Revisions[h.SecretRevision]

	switch h.Kind {
	case hook.SecretChanged:
		if c, reads := r.Consumers[unit]; reads {
			c.Told = max(c.Told, h.SecretRevision)
			r.Consumers[unit] = c
		}
	case hook.SecretRotate:
		r.RotateAt, _ = secret.NextRotation(r.Rotate, now)
		soon := now.Add(retryInterval)
		if r.Latest <= h.SecretRevision && !r.RotateAt.IsZero() && soon.Before(r.RotateAt) {
			r.RotateAt = soon
		}
	case hook.SecretExpired:
		rev.DueAt = now.Add(retryInterval)
	case hook.SecretRemove:
		rev.Obsolete = true
	}

	if there {
		r.Revisions[h.SecretRevision] = rev
	}
}
