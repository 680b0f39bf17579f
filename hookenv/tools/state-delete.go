package tools

import (
	"context"

	"bijou/hookenv"
)

// deleteState deletes a key of the unit's own key-value pairs. An empty or missing key changes nothing.
func deleteState(ctx context.Context, inv *hookenv.Invocation) error {
	if inv.Arg(0) == "" {
		return nil
	}
	return inv.Hook.SetState(ctx, map[string]*string{inv.Args[0]: nil})
}
