package tools

import (
	"context"
	"strings"

	"bijou/hookenv"
	"bijou/state/text"
)

// logAction reports the arguments, joined by blanks, to the operator who waits for the action.
func logAction(ctx context.Context, inv *hookenv.Invocation) error {
	return inv.Hook.LogAction(ctx, text.EscapeInvalid(strings.Join(inv.Args, " ")))
}
