package tools

import (
	"context"
	"fmt"
	"strings"

	"bijou/hookenv"
)

// printLeaderSettings prints one or all of the leader settings.
func printLeaderSettings(ctx context.Context, inv *hookenv.Invocation) error {
	key := keyArgument(inv)
	if strings.Contains(key, "=") {
		return hookenv.UsageErrorf("invalid key %q", key)
	}
	if err := inv.CheckUnitCall(1); err != nil {
		return err
	}

	settings, err := inv.Hook.LeaderSettings(ctx)
	if err != nil {
		return fmt.Errorf("cannot read leadership settings: %w", err)
	}
	isEmpty := key == "" && len(settings) == 0
	if isEmpty && inv.FormatFor(settings) == hookenv.FormatJSON {
		// Print "null" as Juju does, which charm libraries expect. The default format for nil is a different one.
		inv.Format = hookenv.FormatJSON
		return inv.Print(nil)
	}

	return printSettings(inv, settings, key)
}
