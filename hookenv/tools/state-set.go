package tools

import (
	"context"

	"bijou/hookenv"
)

// setState merges the changes into the unit's own key-value pairs.
func setState(ctx context.Context, inv *hookenv.Invocation, changes map[string]*string) error {
	return inv.Hook.SetState(ctx, changes)
}
