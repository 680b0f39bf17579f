package hookenv

import (
	"context"
)

func actionFail() Tool {
	return Tool{
		Name:     "action-fail",
		Summary:  "mark the running action as failed",
		Usage:    "[MSG]",
		Notes:    "The action goes on, and has failed whatever it exits with. The last message counts.",
		Examples: []string{`action-fail "cannot reach the database"`},
		prepare:  noOptions(failAction),
	}
}

func failAction(ctx context.Context, inv *invocation) error {
	if err := inv.limitArgs(1); err != nil {
		return err
	}
	message := "the action has failed, and gave no reason"
	if len(inv.args) > 0 {
		message = escapeInvalidUTF8(inv.args[0])
	}
	return inv.hook.FailAction(ctx, message)
}
