package tools

import (
	"context"

	"bijou/hookenv"
)

func storageAdd() hookenv.Tool {
	return hookenv.Tool{Name: "storage-add", Prepare: func(*hookenv.FlagSet) hookenv.Runner {
		return func(_ context.Context, inv *hookenv.Invocation) error {
			if len(inv.Args) == 0 {
				return hookenv.UsageErrorf("storage add requires a storage directive")
			}
			return notSupported(inv.Tool.Name)
		}
	}}
}
