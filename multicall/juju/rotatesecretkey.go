package juju

import (
	"fmt"
	"slices"

	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/secret"
)

type rotateSecretKeyCmd struct {
	Forget bool `help:"Remove former keys instead, once nothing is sealed with them. Secrets in backups from that time can then no longer be opened."`
}

// Run creates a new key, copies it to all machines, and then seals all secrets with it. With --forget, it removes
// the old keys instead, unless secrets were still sealed with them. If it is killed at any point, it can be run again.
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
		if c.Forget {
			return o.forgetSecretKeys(e, s, ring)
		}
		return o.addSecretKey(e, s, ring)
	})
}

// addSecretKey gives a new key to all machines, and then seals all secrets with it. ring has the current
// keys. Any key of a ring can open a secret, but only the last key seals secrets.
func (o *operator) addSecretKey(e home.Environment, s *state.State, ring secret.Keyring) error {
	// As the first key, the new key only opens secrets, until every machine has it.
	newKey := secret.NewKey()
	if err := o.giveSecretKeys(e, s, append(secret.Keyring{newKey}, ring...)); err != nil {
		return err
	}

	newRing := append(slices.Clone(ring), newKey)
	if err := o.giveSecretKeys(e, s, newRing); err != nil {
		return err
	}
	resealed, err := o.resealSecrets(s, newRing)
	if err != nil {
		return err
	}

	o.note(
		"secrets are now sealed with a new key (%s resealed); earlier keys stay, since backups need them; to remove them: juju rotate-secret-key --forget",
		formatCount(resealed, "content"),
	)
	return nil
}

// forgetSecretKeys removes all keys of the ring except the last one. If secrets were still sealed with an earlier
// key, it seals them again, keeps all keys, and returns an error.
func (o *operator) forgetSecretKeys(e home.Environment, s *state.State, ring secret.Keyring) error {
	resealed, err := o.resealSecrets(s, ring)
	if err != nil {
		return err
	}
	if resealed > 0 {
		return fmt.Errorf(
			"%s were sealed with an older key, and are now sealed again: a hook may still use the older key, so run this again later",
			formatCount(resealed, "content"),
		)
	}

	return o.giveSecretKeys(e, s, ring[len(ring)-1:])
}
