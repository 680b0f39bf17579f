package tools

import (
	"context"

	"bijou/hookenv"
	"bijou/state/text"
)

// failAction marks the action as failed, with the message in the first argument or a default message.
func failAction(ctx context.Context, inv *hookenv.Invocation) error {
	message := "the action has failed, and gave no reason"
	if len(inv.Args) > 0 {
		message = text.EscapeInvalid(inv.Args[0])
	}
	return inv.Hook.FailAction(ctx, message)
}
