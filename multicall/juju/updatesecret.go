package juju

import (
	"errors"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secret/record"
)

type updateSecretCmd struct {
	Secret    string `arg:"" help:"The name or URI of the secret."`
	Name      string `placeholder:"NAME" help:"Rename the secret."`
	AutoPrune *bool  `negatable:"" help:"Remove revisions that no unit reads any longer."`
	secretFlags
}

// Run changes the secret. It returns a usage error if nothing to change is given.
func (c updateSecretCmd) Run(o *operator) error {
	content, err := c.readContent()
	if err != nil {
		return err
	}
	if content == nil && c.Name == "" && c.Info == "" && c.AutoPrune == nil {
		return console.Usage(errors.New("nothing to change: give KEY=VALUE, --file, --name, --info or --auto-prune"))
	}

	return o.openSecrets(func(s *state.State, ring secret.Keyring) error {
		err := s.Update(o.ctx, func(tx *state.Tx) error { return c.change(tx, ring, content) })
		if err != nil {
			return err
		}

		o.note("secret %q is changed", c.Secret)
		return nil
	})
}

// change applies the flags to the secret, and adds a revision if the content differs.
func (c updateSecretCmd) change(tx *state.Tx, ring secret.Keyring, content secret.Content) error {
	r, err := findOwnSecret(tx.View, c.Secret)
	if err != nil {
		return err
	}

	if c.Name != "" && c.Name != r.Label {
		if err := checkSecretName(tx.View, c.Name); err != nil {
			return err
		}
		r.Label = c.Name
	}
	if c.Info != "" {
		r.Description = c.Info
	}
	if c.AutoPrune != nil {
		r.AutoPrune = *c.AutoPrune
	}
	if content == nil {
		return record.Put(tx, r)
	}

	// The newest revision may have been removed. newest is then nil, which differs from any new content.
	newest, err := record.Open(tx.View, ring, r, r.Latest)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	if newest.Equal(content) {
		return record.Put(tx, r)
	}

	r.AddRevision(time.Now().UTC())
	return putSecret(tx, ring, r, content)
}
