package hookctx

import (
	"context"
	"errors"

	"bijou/hookenv/hookapi"
)

// Action is the action that runs; no hook is one.
func (c *Context) Action(ctx context.Context) (hookapi.Action, error) {
	return hookapi.Action{}, c.noAction(ctx)
}

// SetResults sets what the action returns.
func (c *Context) SetResults(ctx context.Context, _ map[string]any) error { return c.noAction(ctx) }

// FailAction makes the action fail.
func (c *Context) FailAction(ctx context.Context, _ string) error { return c.noAction(ctx) }

// LogAction tells the operator how far the action is.
func (c *Context) LogAction(ctx context.Context, _ string) error { return c.noAction(ctx) }

func (c *Context) noAction(ctx context.Context) error {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return err
	}
	return hookapi.ErrNoAction
}

// Resource is the path of a resource's file.
func (c *Context) Resource(ctx context.Context, _ string) (string, error) {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return "", err
	}
	return "", errors.New("resources are not supported by this version of bijou")
}
