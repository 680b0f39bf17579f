package tools

import (
	"context"
	"strings"

	"bijou/hookenv"
)

func logAction(ctx context.Context, inv *hookenv.Invocation) error {
	if len(inv.Args) == 0 {
		return hookenv.UsageErrorf("no message specified")
	}
	return inv.Hook.LogAction(ctx, escapeInvalidUTF8(strings.Join(inv.Args, " ")))
}
