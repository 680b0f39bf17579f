package hookctx

import (
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
func (c *Context) CloudSpec(ctx context.Context) (spec map[string]any, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkOpen(ctx); err != nil {
		return nil, err
	}
	s := &cachedSecret{opened: map[int]secret.Content{}}
	s.record, err = view(ctx, c, func(v *state.View) (r secret.Record, err error) {
		service, err := v.Service(c.opts.Facts.Service)
		if err == nil && !service.Trusted {
			err = hookapi.ErrSecretDenied
		}
		if err != nil {
			return r, err
		}
		if r, err = secrets.Get(v, secret.CredentialID); errors.Is(err, state.ErrNotFound) {
			err = fmt.Errorf("%w: the operators have given none: juju set-credential", hookapi.ErrSecretDenied)
		}
		return r, err
	})
	if err != nil {
		return nil, err
	}
	content, err := c.openSecret(ctx, s, s.record.Latest)
	if err == nil && json.Unmarshal(content[secret.CredentialKey], &spec) != nil {
		err = fmt.Errorf("the secret %q holds none: juju set-credential", s.record.Label)
	}
	return spec, err
}
