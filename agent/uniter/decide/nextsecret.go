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
func (s Secrets) IDs() (ids []string) {
	for _, r := range s.Records {
		ids = append(ids, r.ID)
	}
	return ids
}

// LabelFor returns the label that a unit uses for a secret, as [secret.Record.LabelFor] does. It returns an
// empty string if there is no record of the secret.
func (s Secrets) LabelFor(id, unit string) string {
	for _, r := range s.Records {
		if r.ID == id {
			return r.LabelFor(unit)
		}
	}
	return ""
}

// nextSecretHook returns the next hook about a secret. If no hook is due, it returns nil and the time at
// which the next hook becomes due. The time is zero if no such hook is scheduled. Changed secrets come first,
// since their hooks can make other secret hooks due.
func (s *Snapshot) nextSecretHook() (due Step, until time.Time) {
	if s.Unit.Life != state.Alive {
		return nil, time.Time{} // a dying unit runs no hooks about secrets
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

// nextSecretChanged returns the secret-changed hook for a secret that the unit can read, and whose latest revision
// is newer than the one that the unit tracks. It skips a secret if the hook has already run for that revision. It
// returns nil if no hook is due.
func (s *Snapshot) nextSecretChanged() Step {
	for _, r := range s.Secrets.Records {
		consumer, isConsumer := r.Consumers[s.Unit.Name]
		hasNewRevision := r.Latest > max(consumer.Revision, consumer.Told)
		if isConsumer && hasNewRevision && r.IsReadableBy(s.Unit.Name, s.grantHolds(r.ID)) {
			return RunHook{hook.ForSecret(hook.SecretChanged, r.ID, r.Latest), FromWorkflow}
		}
	}

	return nil
}

// nextManagedSecretHook returns the next hook about a secret that the unit manages: expired, rotate or
// remove. If no hook is due, it returns nil and the time at which the expired or rotate hook becomes due, whichever
// is earlier. The time is zero if neither is scheduled.
func (s *Snapshot) nextManagedSecretHook(r secret.Record) (step Step, until time.Time) {
	for _, n := range slices.Sorted(maps.Keys(r.Revisions)) {
		dueAt := r.Revisions[n].DueAt
		if s.isDue(dueAt) {
			return RunHook{hook.ForSecret(hook.SecretExpired, r.ID, n), FromWorkflow}, time.Time{}
		}
		until = earlierOf(until, dueAt)
	}

	if s.isDue(r.RotateAt) {
		return RunHook{hook.ForSecret(hook.SecretRotate, r.ID, r.Latest), FromWorkflow}, time.Time{}
	}

	// Obsolete revisions have already had their secret-remove hook.
	for _, n := range r.Untracked(s.grantHolds(r.ID)) {
		if !r.Revisions[n].Obsolete {
			return RunHook{hook.ForSecret(hook.SecretRemove, r.ID, n), FromWorkflow}, time.Time{}
		}
	}

	return nil, earlierOf(until, r.RotateAt)
}

// isDue reports whether a time has come. The zero time never comes.
func (s *Snapshot) isDue(at time.Time) bool { return !at.IsZero() && !s.Now.Before(at) }

// grantHolds returns a function that reports whether a grant of the secret with this id is still valid for a
// unit. A grant for a relation is valid for the snapshot's unit and for the relation's other members while the
// snapshot contains the relation. A grant by operators is valid while Secrets.Granted contains the secret.
func (s *Snapshot) grantHolds(id string) func(unit string, g secret.Grant) bool {
	return func(unit string, g secret.Grant) bool {
		if g.Relation == secret.NoRelation {
			return slices.Contains(s.Secrets.Granted, id)
		}

		r, exists := s.Relations[g.Relation]
		if !exists {
			return false
		}
		isMember := slices.ContainsFunc(r.Members, func(m state.Member) bool { return m.Unit == unit })
		return isMember || unit == s.Unit.Name
	}
}

// retryInterval is the time after which secret-rotate runs again if its charm has not added a revision, and
// after which secret-expired runs again if its charm has not removed the revision.
const retryInterval = 5 * time.Minute

// SecretHookDone updates a secret's record after a hook about that secret has run in the unit. If secret-rotate has
// not added a revision, although the secret's policy rotates it, the hook becomes due again after retryInterval.
// So does secret-expired if it has not removed the revision.
func SecretHookDone(r *secret.Record, unit string, h state.Hook, now time.Time) {
	rev, exists := r.Revisions[h.SecretRevision]

	switch h.Kind {
	case hook.SecretChanged:
		if consumer, isConsumer := r.Consumers[unit]; isConsumer {
			consumer.Told = max(consumer.Told, h.SecretRevision)
			r.Consumers[unit] = consumer
		}
	case hook.SecretRotate:
		r.RotateAt, _ = secret.NextRotation(r.Rotate, now) // an unknown policy never rotates
		retryAt := now.Add(retryInterval)
		wasRotated := r.Latest > h.SecretRevision // the hook has added a revision
		mustRotate := !r.RotateAt.IsZero()
		if mustRotate && !wasRotated && retryAt.Before(r.RotateAt) {
			r.RotateAt = retryAt
		}
	case hook.SecretExpired:
		rev.DueAt = now.Add(retryInterval)
	case hook.SecretRemove:
		rev.Obsolete = true
	}

	if exists { // the hook can have removed the revision
		r.Revisions[h.SecretRevision] = rev
	}
}
