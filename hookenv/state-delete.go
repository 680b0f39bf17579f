package hookenv

import "context"

func stateDelete() Tool {
	return Tool{
		Name:     "state-delete",
		Summary:  "delete what the unit has noted for itself",
		Usage:    "[KEY]",
		Notes:    "A key that is not there is no error, nor is none.",
		Examples: []string{"state-delete installed"},
		prepare:  noOptions(deleteState),
	}
}

func deleteState(ctx context.Context, inv *invocation) error {
	if err := inv.checkUnitCall(1); err != nil {
		return err
	}
	if len(inv.args) == 0 || inv.args[0] == "" {
		return nil
	}
	return inv.hook.SetState(ctx, map[string]*string{inv.args[0]: nil})
}
