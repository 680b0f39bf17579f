package tools

import (
	"context"

	"bijou/hookenv"
)

func storageList() hookenv.Tool {
	return hookenv.Tool{Name: "storage-list", Prepare: func(f *hookenv.FlagSet) hookenv.Runner {
		o := &hookenv.Output{}
		o.AddFlag(f)
		return func(_ context.Context, inv *hookenv.Invocation) error {
			if err := inv.LimitArgs(1); err != nil {
				return err
			}
			return o.Print(inv, []string{})
		}
	}}
}
