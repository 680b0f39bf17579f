package juju

import (
	"strings"

	"bijou/state"
	"bijou/state/secrets"
)

type secretGrantArgs struct {
	Secret   string `arg:"" help:"Its name, or its URI."`
	Services string `arg:"" name:"service,..." help:"The services, all or none."`
}

type grantSecretCmd struct{ secretGrantArgs }

// Run lets the services read the secret.
func (c grantSecretCmd) Run(o *operator) error { return c.setGranted(o, true) }

func (c secretGrantArgs) setGranted(o *operator, may bool) error {
	return o.update(func(tx *state.Tx) error {
		for service := range strings.SplitSeq(c.Services, ",") {
			r, err := findOwnSecret(tx.View, c.Secret)
			if err == nil {
				err = secrets.Grant(tx, r, service, may)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

type revokeSecretCmd struct{ secretGrantArgs }

// Run ends the services' grants.
func (c revokeSecretCmd) Run(o *operator) error { return c.setGranted(o, false) }
