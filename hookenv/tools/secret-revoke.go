package tools

import (
	"context"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

func prepareSecretRevoke(f *hookenv.FlagSet) hookenv.Runner {
	g := &secretGrantee{grant: hookapi.SecretGrant{Relation: hookapi.NoRelation}}
	g.relationFlag.addFlags(f)
	f.AddString(&g.grant.Service, "all grants of this service", "SERVICE", "app", "application")
	f.AddString(&g.grant.Unit, "all grants of this unit alone", "UNIT", "unit")
	return func(ctx context.Context, inv *hookenv.Invocation) error {
		if g.grant.Service != "" && g.grant.Unit != "" {
			return hookenv.UsageErrorf("specify only one of application or unit")
		}
		id, err := takeOnlySecretID(inv)
		if err == nil && (g.option != "" || g.grant.Service+g.grant.Unit == "") {
			err = g.findRelation(ctx, inv)
		}
		if err != nil {
			return err
		}
		return inv.Hook.RevokeSecret(ctx, id, g.grant)
	}
}
