package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
)

func printLeadership(ctx context.Context, inv *hookenv.Invocation, o *hookenv.FormatOption) error {
	leads, err := inv.Hook.IsLeader(ctx)
	if err != nil {
		return fmt.Errorf("leadership status unknown: %w", err)
	}
	return o.Print(inv, leads)
}
