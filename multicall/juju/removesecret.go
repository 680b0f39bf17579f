package juju

import (
	"fmt"

	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secret/record"
)

type removeSecretCmd struct {
	Secrets  []string `arg:"" name:"secret" help:"Names or URIs. Either all secrets are removed, or none."`
	Revision int      `placeholder:"N" help:"Remove only this revision."`
}

// Run removes the secrets that the arguments name or, with --revision, only that revision of each. If it cannot find
// one of them, or if one belongs to a charm, it removes none.
func (c removeSecretCmd) Run(o *operator) error {
	var removed []string
	err := o.update(func(tx *state.Tx) error {
		// After a conflict, this function runs again.
		removed = nil
		chosen := map[string]secret.Record{}
		for _, name := range c.Secrets {
			r, err := findOwnSecret(tx.View, name)
			if err != nil {
				return err
			}
			// Revision 0 stands for the whole secret.
			if _, exists := r.Revisions[c.Revision]; c.Revision != 0 && !exists {
				return fmt.Errorf("secret %q revision %d not found", name, c.Revision)
			}

			// Two words can name the same secret.
			if _, repeated := chosen[r.ID]; !repeated {
				removed = append(removed, name)
			}
			chosen[r.ID] = r
		}

		for _, r := range chosen {
			if _, err := record.Remove(tx, r, c.Revision); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}

	prefix := ""
	if c.Revision != 0 {
		prefix = fmt.Sprintf("revision %d of ", c.Revision)
	}
	for _, name := range removed {
		o.note("%ssecret %q is removed", prefix, name)
	}
	return nil
}
