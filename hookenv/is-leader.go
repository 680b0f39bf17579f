package hookenv

import (
	"context"
	"fmt"
)

func isLeader() Tool {
	return Tool{
		Name:     "is-leader",
		Summary:  "say whether this unit leads its service",
		Usage:    "[--format FORMAT]",
		Notes:    "It prints True or False. Of the units of a service whose agents live, one leads.",
		Examples: []string{"is-leader", `[ "$(is-leader)" = True ] && leader-set password="$(pwgen)"`},
		prepare:  printer(printLeadership),
	}
}

func printLeadership(ctx context.Context, inv *invocation, o *output) error {
	if err := inv.checkUnitCall(0); err != nil {
		return err
	}
	leads, err := inv.hook.IsLeader(ctx)
	if err != nil {
		return fmt.Errorf("leadership status unknown: %w", err)
	}
	return o.print(inv, leads)
}
