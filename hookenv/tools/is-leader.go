package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
)

// printLeadership prints whether the local unit leads its service.
func printLeadership(ctx context.Context, inv *hookenv.Invocation) error {
	leads, err := inv.Hook.IsLeader(ctx)
	if err != nil {
		return fmt.Errorf("leadership status unknown: %w", err)
	}
	return inv.Print(leads)
}
