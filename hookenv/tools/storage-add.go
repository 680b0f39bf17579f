package tools

import (
	"context"

	"bijou/hookenv"
)

func addStorage(_ context.Context, inv *hookenv.Invocation) error {
	if len(inv.Args) == 0 {
		return hookenv.UsageErrorf("storage add requires a storage directive")
	}
	return notSupported(inv.Tool.Name)
}
