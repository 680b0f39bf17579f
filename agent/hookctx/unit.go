package hookctx

import (
	"context"
	"fmt"
	"time"

	"bijou/state"
)

// SetVersion sets the version of the unit's workload at once, even if the hook fails later.
func (c *Context) SetVersion(ctx context.Context, version string) error {
	return c.do(ctx, func() error {
		unit, err := c.localUnit("") // the hook's own unit
		if err != nil {
			return err
		}

		return c.opts.Update(ctx, func(tx *state.Tx) error {
			return tx.SetWorkloadVersion(unit, version, time.Now())
		})
	})
}

// Reboot always returns an error, since bijou does not reboot machines.
func (c *Context) Reboot(ctx context.Context, _ bool) error {
	return c.do(ctx, func() error {
		env, err := view(ctx, c, (*state.View).Environment)
		if err != nil {
			return err
		}
		return fmt.Errorf("cannot reboot: units cannot reboot machines of provider %q", env.Provider)
	})
}
