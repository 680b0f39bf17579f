package tools

import (
	"context"

	"bijou/hookenv"
	"bijou/state/text"
)

// setVersion records the first argument as the version of the unit's workload.
func setVersion(ctx context.Context, inv *hookenv.Invocation) error {
	if err := inv.CheckUnitCall(1); err != nil {
		return err
	}
	return inv.Hook.SetVersion(ctx, text.EscapeInvalid(inv.Args[0]))
}
