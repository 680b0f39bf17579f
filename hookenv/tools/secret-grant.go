package tools

import (
	"context"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

func prepareSecretGrant(f *hookenv.FlagSet) hookenv.Runner {
	g := &secretGrantee{}
	g.relationFlag.addFlags(f)
	f.AddString(&g.grant.Unit, "this unit only", "UNIT", "unit")
	return func(ctx context.Context, inv *hookenv.Invocation) error {
		id, err := takeOnlySecretID(inv)
		if err == nil {
			err = g.findRelation(ctx, inv)
		}
		if err != nil {
			return err
		}
		return inv.Hook.GrantSecret(ctx, id, g.grant)
	}
}

type secretGrantee struct {
	relationFlag
	grant hookapi.SecretGrant
}

func (g *secretGrantee) findRelation(ctx context.Context, inv *hookenv.Invocation) (err error) {
	if err = g.checkRelation(ctx, inv); err == nil {
		g.grant.Relation, err = g.resolveRelation(ctx, inv, "")
	}
	return err
}
