package tools

import (
	"context"
	"strings"

	"bijou/hookenv"
	"bijou/state/text"
)

func logAction(ctx context.Context, inv *hookenv.Invocation) error {
	return inv.Hook.LogAction(ctx, text.EscapeInvalid(strings.Join(inv.Args, " ")))
}
