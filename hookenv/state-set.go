package hookenv

import "context"

func stateSet() Tool {
	return Tool{
		Name:    "state-set",
		Summary: "note something for the unit itself",
		Usage:   "[--file FILE|-] [KEY=VALUE]...",
		Notes: "KEY= notes the empty text; state-delete deletes. The unit's later hooks read it with\n" +
			"state-get once this one has succeeded, whatever happens to the agent; nobody else does.",
		Examples: []string{"state-set installed=yes", "state-set --file notes.yaml", "echo 'host: 10.0.0.1' | state-set --file -"},
		prepare: func(f *flagSet) runner {
			p := &pairFlags{}
			p.addFlag(f)
			return func(ctx context.Context, inv *invocation) error { return setState(ctx, inv, p) }
		},
	}
}

func setState(ctx context.Context, inv *invocation, p *pairFlags) error {
	changes, err := p.readChanges(ctx, inv)
	if err != nil {
		return err
	}
	if err := inv.requireLocalUnit(); err != nil {
		return err
	}
	return inv.hook.SetState(ctx, changes)
}
