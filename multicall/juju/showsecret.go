package juju

import (
	"cmp"
	"fmt"

	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secret/record"
)

type showSecretCmd struct {
	Secret     string `arg:"" help:"The name or URI of the secret."`
	Reveal     bool   `help:"Also show the content."`
	Revision   int    `placeholder:"N" help:"Show the content of this revision; default: the newest."`
	Revisions  bool   `help:"Show all revisions."`
	Format     string `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"Print as yaml or json; default yaml."`
	outputFlag `embed:""`
}

// Run prints the secret. With --reveal it also prints the content of one revision.
func (c showSecretCmd) Run(o *operator) error {
	var ring secret.Keyring // set before read is called, if c.Reveal is true
	read := func(v *state.View) (map[string]secretInfo, error) {
		r, err := findSecret(v, c.Secret)
		if err != nil {
			return nil, err
		}
		if _, exists := r.Revisions[c.Revision]; c.Revision != 0 && !exists {
			return nil, fmt.Errorf("secret %q revision %d not found", c.Secret, c.Revision)
		}

		info := newSecretInfo(r, c.Revisions)
		info.Revision = cmp.Or(c.Revision, r.Latest)
		if c.Reveal {
			content, err := record.Open(v, ring, r, info.Revision)
			if err != nil {
				return nil, err
			}
			info.Content = content.Texts()
		}

		return map[string]secretInfo{r.ID: info}, nil
	}

	show := func(s *state.State) error {
		info, err := state.Read(o.ctx, s, read)
		if err != nil {
			return err
		}
		return o.encode(c.Format, info)
	}

	if !c.Reveal {
		return o.openChosen(show)
	}

	return o.openSecrets(func(s *state.State, keys secret.Keyring) error {
		ring = keys
		return show(s)
	})
}
