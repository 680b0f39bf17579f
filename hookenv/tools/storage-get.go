package tools

import (
	"context"

	"bijou/hookenv"
)

func prepareStorageGet(f *hookenv.FlagSet) hookenv.Runner {
	id, o := "", &hookenv.FormatOption{}
	f.AddString(&id, "which storage", "ID", "s")
	o.AddFlag(f)
	return func(_ context.Context, inv *hookenv.Invocation) error {
		if id == "" {
			return hookenv.UsageErrorf("no storage instance specified")
		}
		if err := inv.LimitArgs(1); err != nil {
			return err
		}
		return notSupported(inv.Tool.Name)
	}
}
