package tools

import (
	"context"

	"bijou/hookenv"
)

func storageList() hookenv.Tool {
	return hookenv.Tool{
		Name:     "storage-list",
		Summary:  "list the unit's storage",
		Usage:    "[NAME]",
		Notes:    "There is none: this version of bijou has no storage to give.",
		Examples: []string{"storage-list", "storage-list --format=json data"},
		Prepare: func(f *hookenv.FlagSet) hookenv.Runner {
			o := &hookenv.Output{}
			o.AddFlag(f)
			return func(_ context.Context, inv *hookenv.Invocation) error {
				if err := inv.LimitArgs(1); err != nil {
					return err
				}
				return o.Print(inv, []string{})
			}
		},
	}
}
