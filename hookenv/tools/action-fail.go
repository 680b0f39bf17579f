package tools

import (
	"context"

	"bijou/hookenv"
)

func failAction(ctx context.Context, inv *hookenv.Invocation) error {
	message := "the action has failed, and gave no reason"
	if len(inv.Args) > 0 {
		message = escapeInvalidUTF8(inv.Args[0])
	}
	return inv.Hook.FailAction(ctx, message)
}
