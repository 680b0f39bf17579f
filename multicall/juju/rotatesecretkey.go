package juju

import (
	"fmt"
	"slices"

	"bijou/state"
	"bijou/state/secret"
)

type rotateSecretKeyCmd struct {
	Forget bool `help:"Remove former keys instead, once nothing is sealed with them. Secrets in backups from that time can then no longer be opened."`
}

// Run creates a new key, copies it to all machines, and then seals all secrets with it. If it is killed at
// any point, it can be run again. It removes old keys only with --forget.
func (c rotateSecretKeyCmd) Run(o *operator) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}
	lock, err := o.home.Lock(e.Name)
	if err != nil {
		return fmt.Errorf("cannot rotate the key for secrets: %w", err)
	}
	defer lock.Release()

	return o.openSecrets(func(s *state.State, ring secret.Keyring) error {
		// Any key of a ring can open a secret, but only the last key seals secrets.
		next := slices.Clone(ring)
		if !c.Forget {
			// As the first key, the new key only opens secrets, until every machine has it.
			newKey := secret.NewKey()
			if err := o.giveSecretKeys(e, s, append(secret.Keyring{newKey}, ring...)); err != nil {
				return err
			}

			next = append(next, newKey)
			if err := o.giveSecretKeys(e, s, next); err != nil {
				return err
			}
		}

		n, err := o.resealSecrets(s, next)
		switch {
		case err != nil:
			return err
		case c.Forget && n > 0:
			return fmt.Errorf(
				"%s were sealed with an older key, and are now sealed again: a hook may still use the older key, so run this again later",
				formatCount(n, "content"),
			)
		case c.Forget:
			return o.giveSecretKeys(e, s, next[len(next)-1:])
		}

		o.note(
			"secrets are now sealed with a new key (%s resealed); earlier keys stay, since backups need them; to remove them: juju rotate-secret-key --forget",
			formatCount(n, "content"),
		)

		return nil
	})
}
