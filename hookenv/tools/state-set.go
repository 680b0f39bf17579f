package tools

import (
	"context"

	"bijou/hookenv"
)

func setState(ctx context.Context, inv *hookenv.Invocation, changes map[string]*string) error {
	return inv.Hook.SetState(ctx, changes)
}
