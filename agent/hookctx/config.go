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
		if c.config == nil {
			read, err := view(ctx, c, func(v *state.View) (serviceConfig, error) {
				return readConfig(v, c.opts.Facts.Service, c.opts.CharmURL)
			})
			if err != nil {
				return nil, err
			}
			c.config = &read
		}
		return maps.Clone(c.config.values), nil
	})
}

func readConfig(v *state.View, service, charmURL string) (serviceConfig, error) {
	set, err := v.Config(service)
	if err != nil {
		return serviceConfig{}, err
	}
	values, err := v.EffectiveConfig(service, charmURL)
	return serviceConfig{values, set.Version}, err
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
