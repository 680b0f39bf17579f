package tools

import (
	"context"
	"fmt"
	"strings"

	"bijou/hookenv"
)

func printLeaderSettings(ctx context.Context, inv *hookenv.Invocation, o *hookenv.FormatOption) error {
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
	value, set := settings[key]
	switch {
	case key != "" && set:
		return o.Print(inv, value)
	case key != "":
		return o.Print(inv, nil)
	case len(settings) == 0 && o.FormatFor(inv, settings) == hookenv.FormatJSON:
		o.Format = hookenv.FormatJSON
		return o.Print(inv, nil) // "null", as charm libraries know it from Juju
	}
	return o.Print(inv, settings)
}
