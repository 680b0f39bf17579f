package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
	"bijou/state/secret"
)

// prepareSecretAdd declares the options of secret-add, which creates a secret.
func prepareSecretAdd(f *hookenv.FlagSet) hookenv.Runner {
	s := &secretFlags{}
	s.addFlags(f)
	return s.runAdd
}

// runAdd creates a secret, and prints its URI.
func (s *secretFlags) runAdd(ctx context.Context, inv *hookenv.Invocation) error {
	if err := s.readChange(ctx, inv, inv.Args); err != nil {
		return err
	}
	if s.change.Content == nil {
		return hookenv.UsageErrorf("missing secret value or filename")
	}

	id, err := inv.Hook.AddSecret(ctx, s.owner == "unit", s.change)
	if err != nil {
		return err
	}

	fmt.Fprintf(&inv.Stdout, "%s//%s/%s\n", secret.Scheme, inv.Facts.Model, id)
	return nil
}
