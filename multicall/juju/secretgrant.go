package juju

import (
	"strings"

	"bijou/state"
	"bijou/state/secret/record"
)

// secretGrantArgs are the arguments of grant-secret and revoke-secret.
type secretGrantArgs struct {
	Secret   string `arg:"" help:"The name or URI of the secret."`
	Services string `arg:"" name:"application,..." help:"The applications; either all succeed or none."`
}

// setGranted lets the services, separated by commas, read the secret if may is true, and otherwise revokes this
// right. It changes the rights of all services, or of none.
func (c secretGrantArgs) setGranted(o *operator, may bool) error {
	err := o.update(func(tx *state.Tx) error {
		for service := range strings.SplitSeq(c.Services, ",") {
			// Each grant changes the record, so the next one must read it again.
			r, err := findOwnSecret(tx.View, c.Secret)
			if err != nil {
				return err
			}
			if err := record.Grant(tx, r, service, may); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		return err
	}

	verb := "cannot"
	if may {
		verb = "can"
	}
	o.note("%s %s read secret %q", strings.ReplaceAll(c.Services, ",", ", "), verb, c.Secret)
	return nil
}
