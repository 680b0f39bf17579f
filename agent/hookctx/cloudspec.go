package hookctx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secret/record"
)

// CloudSpec returns the values that the operators have given of the cloud.
func (c *Context) CloudSpec(ctx context.Context) (map[string]any, error) {
	return answer(ctx, c, func() (map[string]any, error) {
		return view(ctx, c, func(v *state.View) (map[string]any, error) { return c.readCloudSpec(ctx, v) })
	})
}

// readCloudSpec returns the cloud's credential. It returns [hookapi.ErrSecretDenied] if the service is not
// trusted, or if the operators have given no credential.
func (c *Context) readCloudSpec(ctx context.Context, v *state.View) (spec map[string]any, err error) {
	s, err := v.Service(c.opts.Facts.Service)
	if err != nil {
		return nil, err
	}
	if !s.Trusted {
		return nil, hookapi.ErrSecretDenied
	}

	r, err := record.Get(v, secret.CredentialID)
	if errors.Is(err, state.ErrNotFound) {
		return nil, fmt.Errorf("%w: the operators have set none: juju set-credential", hookapi.ErrSecretDenied)
	}
	if err != nil {
		return nil, err
	}

	sealer, err := secret.SealerOf(ctx, c.opts.SecretKeys)
	if err != nil {
		return nil, err
	}
	content, err := record.Open(v, sealer, r, r.Latest)
	if err != nil {
		return nil, err
	}

	if json.Unmarshal(content[secret.CredentialKey], &spec) != nil { // the error may quote it
		return nil, fmt.Errorf("the secret %q holds none: juju set-credential", r.Label)
	}
	return spec, nil
}
