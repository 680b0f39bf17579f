package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
)

func isLeader() hookenv.Tool {
	return hookenv.Tool{Name: "is-leader", Prepare: hookenv.WithOutput(printLeadership)}
}

func printLeadership(ctx context.Context, inv *hookenv.Invocation, o *hookenv.Output) error {
	if err := inv.CheckUnitCall(0); err != nil {
		return err
	}
	leads, err := inv.Hook.IsLeader(ctx)
	if err != nil {
		return fmt.Errorf("leadership status unknown: %w", err)
	}
	return o.Print(inv, leads)
}
