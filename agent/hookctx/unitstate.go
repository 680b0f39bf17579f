package hookctx

import (
	"context"

	"bijou/state"
)

// State returns the unit's own key-value pairs, own writes applied.
func (c *Context) State(ctx context.Context) (map[string]string, error) {
	return answer(ctx, c, func() (map[string]string, error) { return cloneValues(c.loadUnitState(ctx)) })
}

// SetState merges changes into them, with the hook's success.
func (c *Context) SetState(ctx context.Context, changes map[string]*string) error {
	return c.do(ctx, func() error {
		n, err := c.loadUnitState(ctx)
		if err != nil {
			return err
		}
		return n.apply(changes)
	})
}

func (c *Context) loadUnitState(ctx context.Context) (*settingsNode, error) {
	unit, err := c.localUnit("")
	if err != nil {
		return nil, err
	}
	return c.loadOnce(ctx, &c.unitState, func(v *state.View) (state.Settings, error) { return v.UnitState(unit) })
}
