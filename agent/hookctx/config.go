package hookctx

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secrets"
)

type serviceConfig struct {
	values  map[string]any
	version int64
}

// Config returns the options that the hook sees.
func (c *Context) Config(ctx context.Context) (map[string]any, error) {
	return answer(ctx, c, func() (map[string]any, error) {
		config, err := loadOnce(ctx, c, &c.config, c.readConfig)
		if err != nil {
			return nil, err
		}
		return maps.Clone(config.values), nil
	})
}

func (c *Context) readConfig(v *state.View) (*serviceConfig, error) {
	set, err := v.Config(c.opts.Facts.Service)
	if err != nil {
		return nil, err
	}
	values, err := v.EffectiveConfig(c.opts.Facts.Service, c.opts.CharmURL)
	return &serviceConfig{values, set.Version}, err
}

// SeenConfig returns the version of the configuration that the hook has read, or 0.
func (c *Context) SeenConfig() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.config == nil {
		return 0
	}
	return c.config.version
}

// CloudSpec returns what the operators have given of the cloud.
func (c *Context) CloudSpec(ctx context.Context) (map[string]any, error) {
	return answer(ctx, c, func() (map[string]any, error) { return view(ctx, c, c.readCloudSpec) })
}

func (c *Context) readCloudSpec(v *state.View) (spec map[string]any, err error) {
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
}
