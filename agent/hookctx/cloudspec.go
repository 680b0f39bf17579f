package hookctx

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secrets"
)

// CloudSpec returns what the operators have given of the cloud.
func (c *Context) CloudSpec(ctx context.Context) (map[string]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkOpen(ctx); err != nil {
		return nil, err
	}
	return view(ctx, c, func(v *state.View) (spec map[string]any, err error) {
		s, err := v.Service(c.opts.Facts.Service)
		if err != nil || !s.Trusted {
			return nil, cmp.Or(err, hookapi.ErrSecretDenied)
		}
		r, err := secrets.Get(v, secret.CredentialID)
		if errors.Is(err, state.ErrNotFound) {
			err = fmt.Errorf("%w: the operators have given none: juju set-credential", hookapi.ErrSecretDenied)
		}
		ring, kerr := c.opts.SecretKeys.Read()
		if err != nil || kerr != nil {
			return nil, cmp.Or(err, kerr)
		}
		content, err := secrets.Open(v, ring, r, r.Latest)
		if err == nil && json.Unmarshal(content[secret.CredentialKey], &spec) != nil {
			err = fmt.Errorf("the secret %q holds none: juju set-credential", r.Label)
		}
		return spec, err
	})
}
