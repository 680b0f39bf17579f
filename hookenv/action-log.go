package hookenv

import (
	"context"
	"strings"
)

func actionLog() Tool {
	return Tool{
		Name:     "action-log",
		Summary:  "report progress of the running action",
		Usage:    "MSG...",
		Notes:    "Who waits for the action sees it at once.",
		Examples: []string{"action-log copied 3 of 7 files"},
		prepare:  noOptions(logAction),
	}
}

func logAction(ctx context.Context, inv *invocation) error {
	if len(inv.args) == 0 {
		return usagef("no message specified")
	}
	return inv.hook.LogAction(ctx, escapeInvalidUTF8(strings.Join(inv.args, " ")))
}
