package tools

import (
	"context"
	"strings"

	"bijou/hookenv"
)

func actionLog() hookenv.Tool {
	return hookenv.Tool{Name: "action-log", Prepare: hookenv.WithoutOptions(logAction)}
}

func logAction(ctx context.Context, inv *hookenv.Invocation) error {
	if len(inv.Args) == 0 {
		return hookenv.UsageErrorf("no message specified")
	}
	return inv.Hook.LogAction(ctx, escapeInvalidUTF8(strings.Join(inv.Args, " ")))
}
