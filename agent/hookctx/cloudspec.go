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

// CloudSpec returns the specification of the cloud, with the credential that an operator has set. It returns
// [hookapi.ErrSecretDenied] if the service is not trusted, or if no operator has set a credential.
func (c *Context) CloudSpec(ctx context.Context) (map[string]any, error) {
	return answer(ctx, c, func() (map[string]any, error) {
		return view(ctx, c, func(v *state.View) (map[string]any, error) { return c.readCloudSpec(ctx, v) })
	})
}

// readCloudSpec reads the specification for CloudSpec, and opens the secret that holds it.
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
		return nil, fmt.Errorf("%w: no credential has been set: juju set-credential", hookapi.ErrSecretDenied)
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

	// Do not wrap the error: it can quote the credential.
	if json.Unmarshal(content[secret.CredentialKey], &spec) != nil {
		return nil, fmt.Errorf("the secret %q contains no credential: juju set-credential", r.Label)
	}
	return spec, nil
}
