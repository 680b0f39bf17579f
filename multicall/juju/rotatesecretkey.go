package juju

import (
	"fmt"
	"slices"

	"bijou/state"
	"bijou/state/secret"
)

type rotateSecretKeyCmd struct {
	Forget bool `help:"Remove former keys instead, once nothing is sealed with them. Backups from that time can no longer be opened."`
}

// Run makes a new key, gives it to all machines, and then seals all secrets with it. It may be killed at
// any point and run again. It removes old keys only with --forget.
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
		next := slices.Clone(ring)
		if !c.Forget {
			fresh := secret.NewKey()
			if err := o.giveSecretKeys(e, s, append(secret.Keyring{fresh}, ring...)); err != nil {
				return err
			}

			next = append(next, fresh)
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
			"secrets are sealed with a new key, %s again; earlier keys stay, for backups: juju rotate-secret-key --forget removes them",
			formatCount(n, "content"),
		)

		return nil
	})
}
