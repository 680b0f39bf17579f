package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
)

func leaderSet() hookenv.Tool {
	return hookenv.Tool{Name: "leader-set", Prepare: func(f *hookenv.FlagSet) hookenv.Runner {
		p := &pairFlags{}
		p.addFlag(f)
		return func(ctx context.Context, inv *hookenv.Invocation) error { return setLeaderSettings(ctx, inv, p) }
	}}
}

func setLeaderSettings(ctx context.Context, inv *hookenv.Invocation, p *pairFlags) error {
	changes, err := p.readChanges(ctx, inv)
	if err != nil {
		return err
	}
	if err := inv.RequireLocalUnit(); err != nil {
		return err
	}
	for key, value := range changes {
		if *value == "" {
			changes[key] = nil
		}
	}
	if err := inv.Hook.SetLeaderSettings(ctx, changes); err != nil {
		return fmt.Errorf("cannot write leadership settings: %w", err)
	}
	return nil
}
