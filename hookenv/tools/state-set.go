package tools

import (
	"context"

	"bijou/hookenv"
)

func stateSet() hookenv.Tool {
	return hookenv.Tool{Name: "state-set", Prepare: func(f *hookenv.FlagSet) hookenv.Runner {
		p := &pairFlags{}
		p.addFlag(f)
		return func(ctx context.Context, inv *hookenv.Invocation) error { return setState(ctx, inv, p) }
	}}
}

func setState(ctx context.Context, inv *hookenv.Invocation, p *pairFlags) error {
	changes, err := p.readChanges(ctx, inv)
	if err != nil {
		return err
	}
	if err := inv.RequireLocalUnit(); err != nil {
		return err
	}
	return inv.Hook.SetState(ctx, changes)
}
