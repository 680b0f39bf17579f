package tools

import (
	"context"

	"bijou/hookenv"
)

func stateSet() hookenv.Tool {
	return hookenv.Tool{
		Name:    "state-set",
		Summary: "note something for the unit itself",
		Usage:   "[--file FILE|-] [KEY=VALUE]...",
		Notes: "KEY= notes the empty text; state-delete deletes. The unit's later hooks read it with\n" +
			"state-get once this one has succeeded, whatever happens to the agent; nobody else does.",
		Examples: []string{"state-set installed=yes", "state-set --file notes.yaml", "echo 'host: 10.0.0.1' | state-set --file -"},
		Prepare: func(f *hookenv.FlagSet) hookenv.Runner {
			p := &pairFlags{}
			p.addFlag(f)
			return func(ctx context.Context, inv *hookenv.Invocation) error { return setState(ctx, inv, p) }
		},
	}
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
