package uniter

import (
	"errors"
	"slices"

	"bijou/agent/uniter/decide"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secrets"
)

// readSecrets costs no round trip for a unit that has to do with none: both indexes come
// with the unit's record.
func readSecrets(v *state.View, s *decide.Snapshot) error {
	own, err := secrets.IndexOf(v, secret.Owner{Unit: s.Unit.Name})
	if err != nil {
		return err
	}
	shared, err := secrets.IndexOf(v, secret.Owner{Service: s.Unit.Service})
	if err != nil {
		return err
	}
	s.Secrets = decide.Secrets{Managed: own.Owned, Granted: shared.Granted}
	if len(shared.Owned) > 0 {
		leader, err := v.Leader(s.Unit.Service)
		if err != nil {
			return err
		}
		if leader == s.Unit.Name {
			s.Secrets.Managed = slices.Concat(own.Owned, shared.Owned)
		}
	}
	s.Secrets.Records, err = secrets.Read(v, slices.Concat(own.Consumed, s.Secrets.Managed))
	return err
}

// recordSecretHook leaves a secret alone that is gone, or that the hook itself has removed.
func recordSecretHook(tx *state.Tx, unit string, h state.Hook) error {
	if h.Secret == "" {
		return nil
	}
	r, err := secrets.Get(tx.View, h.Secret)
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	decide.SecretHookDone(&r, unit, h, now())
	return secrets.Put(tx, r)
}

// checkSecretKeys returns why the unit's secrets cannot be opened here.
func (u *uniter) checkSecretKeys() error {
	if len(u.cache.snap.Secrets.Records) == 0 {
		return nil
	}
	_, err := u.SecretKeys.Read()
	return err
}
