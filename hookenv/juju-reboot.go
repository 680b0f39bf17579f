package hookenv

import (
	"context"
	"errors"

	"bijou/hookenv/hookapi"
)

func jujuReboot() Tool {
	return Tool{
		Name:     "juju-reboot",
		Summary:  "reboot the machine",
		Usage:    "[--now]",
		Notes:    "This version of bijou reboots no machine: it answers with an error, and the hook goes on.",
		Examples: []string{"juju-reboot", "juju-reboot --now"},
		prepare: func(f *flagSet) runner {
			now := false
			f.addBool(&now, "at once", "now")
			return func(ctx context.Context, inv *invocation) error { return rebootMachine(ctx, inv, now) }
		},
	}
}

func rebootMachine(ctx context.Context, inv *invocation, now bool) error {
	if err := inv.checkUnitCall(0); err != nil {
		return err
	}
	_, err := inv.hook.Action(ctx)
	if err == nil {
		//lint:ignore ST1005 charms and operators know these very words
		return errors.New("juju-reboot is not supported when running an action.")
	}
	if !errors.Is(err, hookapi.ErrNoAction) {
		return err
	}
	return inv.hook.Reboot(ctx, now)
}
