package hookenv

import (
	"context"
	"fmt"
	"strings"
)

func leaderGet() Tool {
	return Tool{
		Name:     "leader-get",
		Summary:  "print what the service's leader has set",
		Usage:    "[-|KEY]",
		Notes:    "Without KEY, or for -, it prints all of it.",
		Examples: []string{"leader-get password", "leader-get --format=json -"},
		prepare:  printer(printLeaderSettings),
	}
}

func printLeaderSettings(ctx context.Context, inv *invocation, o *output) error {
	key := keyArgument(inv)
	if strings.Contains(key, "=") {
		return usagef("invalid key %q", key)
	}
	if err := inv.checkUnitCall(1); err != nil {
		return err
	}
	settings, err := inv.hook.LeaderSettings(ctx)
	if err != nil {
		return fmt.Errorf("cannot read leadership settings: %w", err)
	}
	value, set := settings[key]
	switch {
	case key != "" && set:
		return o.print(inv, value)
	case key != "":
		return o.print(inv, nil)
	case len(settings) == 0 && o.formatFor(inv, settings) == formatJSON:
		o.format = formatJSON
		return o.print(inv, nil) // "null", as charm libraries know it from Juju
	}
	return o.print(inv, settings)
}
