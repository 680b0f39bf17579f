package tools

import (
	"context"

	"bijou/hookenv"
)

func deleteState(ctx context.Context, inv *hookenv.Invocation) error {
	if inv.Arg(0) == "" {
		return nil
	}
	return inv.Hook.SetState(ctx, map[string]*string{inv.Args[0]: nil})
}
