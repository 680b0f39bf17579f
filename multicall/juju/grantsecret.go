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

// Help shows how it is used.
func (grantSecretCmd) Help() string {
	return `Examples:
  juju grant-secret api-token website
  juju grant-secret api-token website,worker`
}

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

// Help shows how it is used.
func (revokeSecretCmd) Help() string {
	return `What units have read already they may have kept: juju update-secret makes that useless.

Examples:
  juju revoke-secret api-token website`
}

// Run ends the services' grants.
func (c revokeSecretCmd) Run(o *operator) error { return c.setGranted(o, false) }
