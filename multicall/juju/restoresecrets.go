package juju

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/archive"
	"bijou/state/secret"
	"bijou/state/secretkeys"
	"bijou/state/secrets"
)

// takeSecretKeys puts the keys of the backup, and those of --key, before the environment's
// own, which are newer; there is always one that seals.
func (r *restore) takeSecretKeys(e home.Environment) error {
	var ring secret.Keyring
	if name := archive.SecretKeysName(); slices.Contains(r.archive.Names(name), name) {
		data, err := r.archive.ReadAll(name, maxCredentialSize)
		if err == nil {
			ring, err = secretkeys.Parse(data)
		}
		if err != nil {
			return err
		}
	}
	if r.cmd.Key != "" {
		given, err := secretkeys.File(r.cmd.Key).Read()
		if err != nil {
			return fmt.Errorf("cannot take the keys of %q: %w", r.cmd.Key, err)
		}
		ring = append(ring, given...)
	}
	own, err := e.SecretKeys().Read()
	if err != nil && !errors.Is(err, secret.ErrNoKey) {
		return err
	}
	if ring = append(ring, own...); len(ring) == 0 {
		ring = secret.Keyring{secret.NewKey()}
	}
	return e.SecretKeys().Write(ring)
}

// noteSealed names the secrets that cannot be opened.
func (r *restore) noteSealed(e home.Environment) error {
	ring, err := e.SecretKeys().Read()
	if err != nil {
		return err
	}
	return r.o.openUnchecked(e, func(s *state.State) error {
		sealed, err := state.Read(r.o.ctx, s, func(v *state.View) (sealed []string, err error) {
			all, err := secrets.All(v)
			for _, one := range all {
				_, oerr := secrets.Open(v, ring, one, one.Latest)
				if errors.Is(oerr, secret.ErrNoKey) {
					sealed = append(sealed, fmt.Sprintf("%s of %s", one.ID, one.Owner))
				} else if !errors.Is(oerr, state.ErrNotFound) { // that revision was removed
					err = errors.Join(err, oerr)
				}
			}
			return sealed, err
		})
		if len(sealed) > 0 {
			r.o.note("warning: nothing here opens these secrets: %s", strings.Join(sealed, ", "))
			r.o.note("hint: restore with --key FILE, the %s of a host of the environment that was backed up", secretkeys.Name)
		}
		return err
	})
}
