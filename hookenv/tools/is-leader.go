package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
)

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
