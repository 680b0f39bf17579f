package tools

import (
	"context"

	"bijou/hookenv"
)

func prepareSecretSet(f *hookenv.FlagSet) hookenv.Runner {
	s := &secretFlags{}
	s.addFlags(f)
	return func(ctx context.Context, inv *hookenv.Invocation) error {
		id, err := takeSecretID(inv)
		if err == nil {
			err = s.readChange(ctx, inv, inv.Args)
		}
		if err != nil {
			return err
		}
		return inv.Hook.SetSecret(ctx, id, s.change)
	}
}
