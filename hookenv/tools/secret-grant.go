package tools

import (
	"context"

	"bijou/hookenv"
)

// prepareSecretGrant declares the options of secret-grant, which lets the remote service of a relation read a secret.
func prepareSecretGrant(f *hookenv.FlagSet) hookenv.Runner {
	g := &secretGrantee{}
	g.relationFlag.addFlags(f)
	f.AddString(&g.grant.Unit, "allow only this unit to read the secret", "UNIT", "unit")

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		id, err := takeOnlySecretID(inv)
		if err != nil {
			return err
		}
		if err := g.setRelation(ctx, inv); err != nil {
			return err
		}

		return inv.Hook.GrantSecret(ctx, id, g.grant)
	}
}
