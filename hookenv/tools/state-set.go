package tools

import (
	"context"

	"bijou/hookenv"
)

func stateSet() hookenv.Tool {
	return hookenv.Tool{Name: "state-set", Prepare: withPairs(setState)}
}

func setState(ctx context.Context, inv *hookenv.Invocation, changes map[string]*string) error {
	return inv.Hook.SetState(ctx, changes)
}
