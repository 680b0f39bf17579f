package hookctx

import (
	"context"
	"errors"

	"bijou/hookenv/hookapi"
)

var errUnbuilt = errors.New("not supported by this version of bijou")

func (c *Context) unbuilt(ctx context.Context) error {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return err
	}
	return errUnbuilt
}

// IsLeader says whether the local unit leads its service.
func (c *Context) IsLeader(ctx context.Context) (bool, error) { return false, c.unbuilt(ctx) }

// LeaderSettings returns what the leader tells its peers.
func (c *Context) LeaderSettings(ctx context.Context) (map[string]string, error) {
	return nil, c.unbuilt(ctx)
}

// SetLeaderSettings changes it.
func (c *Context) SetLeaderSettings(ctx context.Context, _ map[string]*string) error {
	return c.unbuilt(ctx)
}

// State returns the unit's own notes.
func (c *Context) State(ctx context.Context) (map[string]string, error) { return nil, c.unbuilt(ctx) }

// SetState changes them.
func (c *Context) SetState(ctx context.Context, _ map[string]*string) error { return c.unbuilt(ctx) }

// Network describes what an endpoint is bound to.
func (c *Context) Network(ctx context.Context, _ string, _ int) (hookapi.Network, error) {
	return hookapi.Network{}, c.unbuilt(ctx)
}

// Bindings are the charm's endpoints.
func (c *Context) Bindings(ctx context.Context) ([]string, error) { return nil, c.unbuilt(ctx) }

// Goals are the units and relations to be.
func (c *Context) Goals(ctx context.Context) (hookapi.Goals, error) {
	return hookapi.Goals{}, c.unbuilt(ctx)
}

// SetVersion says which version of the workload runs.
func (c *Context) SetVersion(ctx context.Context, _ string) error { return c.unbuilt(ctx) }

// Reboot asks for the machine's reboot.
func (c *Context) Reboot(ctx context.Context, _ bool) error { return c.unbuilt(ctx) }
