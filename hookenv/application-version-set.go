package hookenv

import "context"

func applicationVersionSet() Tool {
	return Tool{
		Name:     "application-version-set",
		Summary:  "say which version of the workload the unit runs",
		Usage:    "VERSION",
		Notes:    "The operator sees it in juju status, at once.",
		Examples: []string{"application-version-set 6.4.1", `application-version-set -- "$(cat VERSION)"`},
		prepare:  noOptions(setVersion),
	}
}

func setVersion(ctx context.Context, inv *invocation) error {
	if len(inv.args) == 0 {
		return usagef("no version specified")
	}
	if err := inv.checkUnitCall(1); err != nil {
		return err
	}
	return inv.hook.SetVersion(ctx, escapeInvalidUTF8(inv.args[0]))
}
