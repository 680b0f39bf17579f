package tools

import (
	"context"

	"bijou/hookenv"
)

func printAddress(ctx context.Context, inv *hookenv.Invocation, o *hookenv.FormatOption) error {
	if len(inv.Args) == 0 {
		return hookenv.UsageErrorf("no setting specified")
	}
	setting := inv.Args[0]
	if setting != "private-address" && setting != "public-address" {
		return hookenv.UsageErrorf("unknown setting %q", setting)
	}
	if err := inv.CheckUnitCall(1); err != nil {
		return err
	}
	address, err := inv.Hook.Address(ctx, setting == "public-address")
	if err != nil {
		return err
	}
	return o.Print(inv, address)
}
