package tools

import (
	"context"

	"bijou/hookenv"
)

func setVersion(ctx context.Context, inv *hookenv.Invocation) error {
	if len(inv.Args) == 0 {
		return hookenv.UsageErrorf("no version specified")
	}
	if err := inv.CheckUnitCall(1); err != nil {
		return err
	}
	return inv.Hook.SetVersion(ctx, escapeInvalidUTF8(inv.Args[0]))
}
