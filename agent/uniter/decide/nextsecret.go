package decide

import (
	"maps"
	"slices"
	"time"

	"bijou/agent/hook"
	"bijou/state"
	"bijou/state/secret"
)

// Secrets holds the secrets that a unit reads or manages.
type Secrets struct {
	Records []secret.Record
	Managed []string // ids of the unit's own secrets and, if the unit leads, its service's
	Granted []string // ids of the operators' secrets that the unit's service can read
}

// IDs returns the ids of all records.
func (all Secrets) IDs() (ids []string) {
	for _, r := range all.Records {
		ids = append(ids, r.ID)
	}
	return ids
}

// LabelFor returns a unit's label for a secret, or an empty string if the unit has set none.
func (all Secrets) LabelFor(id, unit string) string {
	for _, r := range all.Records {
		if r.ID == id {
			return r.LabelFor(unit)
		}
	}
	return ""
}

// nextSecretHook returns the next hook about a secret. It returns nil if none is due, with the time at which
// the next one becomes due. The time is zero if no time is set for any. Changed secrets come first, since
// their hooks can make further hooks due.
func (s *Snapshot) nextSecretHook() (step Step, until time.Time) {
	if s.Unit.Life != state.Alive {
		return nil, time.Time{}
	}
	if step := s.nextSecretChanged(); step != nil {
		return step, time.Time{}
	}

	for _, r := range s.Secrets.Records {
		if !slices.Contains(s.Secrets.Managed, r.ID) {
			continue
		}
		step, at := s.nextManagedSecretHook(r)
		if step != nil {
			return step, time.Time{}
		}
		until = earlierOf(until, at)
	}

	return nil, until
}

// nextSecretChanged returns the secret-changed hook for a secret that the unit reads and that has a newer
// revision, for which the hook has not run yet. It returns nil if there is no such secret.
func (s *Snapshot) nextSecretChanged() Step {
	for _, r := range s.Secrets.Records {
		c, reads := r.Consumers[s.Unit.Name]
		if reads && r.Latest > max(c.Revision, c.Told) && r.IsReadableBy(s.Unit.Name, s.isGrantedBy(r.ID)) {
			return RunHook{hook.ForSecret(hook.SecretChanged, r.ID, r.Latest), FromWorkflow}
		}
	}

	return nil
}

// nextManagedSecretHook returns the next hook about a secret that the unit manages: expired, rotate or remove. It
// returns nil if none is due, with the time at which the secret expires or must rotate, whichever is earlier.
func (s *Snapshot) nextManagedSecretHook(r secret.Record) (step Step, until time.Time) {
	for _, n := range slices.Sorted(maps.Keys(r.Revisions)) {
		at := r.Revisions[n].DueAt
		if !at.IsZero() && !s.Now.Before(at) {
			return RunHook{hook.ForSecret(hook.SecretExpired, r.ID, n), FromWorkflow}, time.Time{}
		}
		until = earlierOf(until, at)
	}

	if !r.RotateAt.IsZero() && !s.Now.Before(r.RotateAt) {
		return RunHook{hook.ForSecret(hook.SecretRotate, r.ID, r.Latest), FromWorkflow}, time.Time{}
	}

	for _, n := range r.Untracked(s.isGrantedBy(r.ID)) {
		if !r.Revisions[n].Obsolete {
			return RunHook{hook.ForSecret(hook.SecretRemove, r.ID, n), FromWorkflow}, time.Time{}
		}
	}

	return nil, earlierOf(until, r.RotateAt)
}

// isGrantedBy returns a function that reports whether a grant of the secret still applies to a unit. A grant
// by a relation applies while that relation exists and the unit is this one or a member of it. Other grants
// apply while the secret is in Secrets.Granted.
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

// retryInterval is the time after which secret-rotate and secret-expired run again if the charm did not act on
// them.
const retryInterval = 5 * time.Minute

// SecretHookDone updates a secret's record after a hook about that secret has run in the unit. Rotation and
// expiry become due again after retryInterval if the hook did not act on them.
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
