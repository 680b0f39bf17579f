package juju

import (
	"errors"
	"fmt"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/secret"
)

type addSecretCmd struct {
	Name string `arg:"" help:"The name of the new secret."`
	secretFlags
}

// Run adds the secret, with the content as its first revision, and prints its URI. It returns a usage error if no
// content is given, and an error if the name cannot be used.
func (c addSecretCmd) Run(o *operator) error {
	content, err := c.readContent()
	if err != nil {
		return err
	}
	if content == nil {
		return console.Usage(errors.New("no content given: give KEY=VALUE, or --file FILE"))
	}

	now := time.Now().UTC()
	id := secret.NewID(now)
	err = o.openSecrets(func(s *state.State, ring secret.Keyring) error {
		return s.Update(o.ctx, func(tx *state.Tx) error {
			record, err := newUserSecret(tx.View, id, c.Name, now)
			if err != nil {
				return err
			}

			record.Description = c.Info
			record.AddRevision(now)
			return putSecret(tx, ring, record, content)
		})
	})
	if err != nil {
		return err
	}

	fmt.Fprintln(o.streams.Out, secret.Scheme+id)
	return nil
}
