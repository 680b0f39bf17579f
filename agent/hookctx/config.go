package hookctx

import (
	"context"
	"maps"

	"bijou/state"
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
