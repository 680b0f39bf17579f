package tools

import (
	"context"

	"bijou/hookenv"
)

func applicationVersionSet() hookenv.Tool {
	return hookenv.Tool{
		Name:     "application-version-set",
		Summary:  "say which version of the workload the unit runs",
		Usage:    "VERSION",
		Notes:    "The operator sees it in juju status, at once.",
		Examples: []string{"application-version-set 6.4.1", `application-version-set -- "$(cat VERSION)"`},
		Prepare:  hookenv.WithoutOptions(setVersion),
	}
}

func setVersion(ctx context.Context, inv *hookenv.Invocation) error {
	if len(inv.Args) == 0 {
		return hookenv.UsageErrorf("no version specified")
	}
	if err := inv.CheckUnitCall(1); err != nil {
		return err
	}
	return inv.Hook.SetVersion(ctx, escapeInvalidUTF8(inv.Args[0]))
}
