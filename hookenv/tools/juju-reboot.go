package tools

import (
	"context"
	"errors"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// prepareJujuReboot declares the options of juju-reboot, which is refused in actions.
func prepareJujuReboot(f *hookenv.FlagSet) hookenv.Runner {
	now := false
	f.AddBool(&now, "at once", "now")

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		_, err := inv.Hook.Action(ctx)
		if err == nil { // an action is running
			//lint:ignore ST1005 charms and operators know these very words
			return errors.New("juju-reboot is not supported when running an action.")
		}
		if !errors.Is(err, hookapi.ErrNoAction) {
			return err
		}

		return inv.Hook.Reboot(ctx, now)
	}
}
