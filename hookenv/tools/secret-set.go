package tools

import (
	"context"

	"bijou/hookenv"
)

// prepareSecretSet declares the options of secret-set, which changes a secret.
func prepareSecretSet(f *hookenv.FlagSet) hookenv.Runner {
	s := &secretFlags{}
	s.addFlags(f)

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		id, err := takeSecretID(inv)
		if err != nil {
			return err
		}
		if err := s.readChange(ctx, inv, inv.Args); err != nil {
			return err
		}

		return inv.Hook.SetSecret(ctx, id, s.change)
	}
}
