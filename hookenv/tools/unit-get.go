package tools

import (
	"context"

	"bijou/hookenv"
)

// printAddress prints the unit's private or public address.
func printAddress(ctx context.Context, inv *hookenv.Invocation) error {
	setting := inv.Args[0] // the tool's Check refuses a call without an argument
	if setting != "private-address" && setting != "public-address" {
		return hookenv.UsageErrorf("unknown setting %q", setting)
	}
	if err := inv.CheckUnitCall(1); err != nil {
		return err
	}

	return inv.PrintResult(inv.Hook.Address(ctx, setting == "public-address"))
}
