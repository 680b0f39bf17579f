package tools

import (
	"context"
	"strings"

	"bijou/hookenv"
)

func actionLog() hookenv.Tool {
	return hookenv.Tool{
		Name:     "action-log",
		Summary:  "report progress of the running action",
		Usage:    "MSG...",
		Notes:    "Who waits for the action sees it at once.",
		Examples: []string{"action-log copied 3 of 7 files"},
		Prepare:  hookenv.WithoutOptions(logAction),
	}
}

func logAction(ctx context.Context, inv *hookenv.Invocation) error {
	if len(inv.Args) == 0 {
		return hookenv.UsageErrorf("no message specified")
	}
	return inv.Hook.LogAction(ctx, escapeInvalidUTF8(strings.Join(inv.Args, " ")))
}
