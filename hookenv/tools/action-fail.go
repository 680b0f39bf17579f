package tools

import (
	"context"

	"bijou/hookenv"
)

func failAction(ctx context.Context, inv *hookenv.Invocation) error {
	if err := inv.LimitArgs(1); err != nil {
		return err
	}
	message := "the action has failed, and gave no reason"
	if len(inv.Args) > 0 {
		message = escapeInvalidUTF8(inv.Args[0])
	}
	return inv.Hook.FailAction(ctx, message)
}
