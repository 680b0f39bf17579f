package hookctx

import (
	"context"
	"maps"

	"bijou/state"
)

// serviceConfig holds the configuration that the hook has read.
type serviceConfig struct {
	values  map[string]any
	version int64
}

// Config returns the values of the charm's options, with defaults applied, as they were at the first call.
func (c *Context) Config(ctx context.Context) (map[string]any, error) {
	return answer(ctx, c, func() (map[string]any, error) {
		config, err := loadOnce(ctx, c, &c.config, c.readConfig)
		if err != nil {
			return nil, err
		}
		return maps.Clone(config.values), nil
	})
}

// readConfig reads the version of the service's configuration, and the values of the charm's options.
func (c *Context) readConfig(v *state.View) (*serviceConfig, error) {
	config, err := v.Config(c.opts.Facts.Service)
	if err != nil {
		return nil, err
	}
	values, err := v.EffectiveConfig(c.opts.Facts.Service, c.opts.CharmURL)
	return &serviceConfig{values, config.Version}, err
}

// SeenConfig returns the version of the configuration that the hook has read. It returns 0 if the hook has
// not read the configuration.
func (c *Context) SeenConfig() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.config == nil {
		return 0
	}
	return c.config.version
}
