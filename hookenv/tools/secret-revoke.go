package tools

import (
	"context"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// prepareSecretRevoke declares the options of secret-revoke, which removes grants by relation, service or unit.
// Without these options, the tool removes the grants of the hook's relation.
func prepareSecretRevoke(f *hookenv.FlagSet) hookenv.Runner {
	g := &secretGrantee{grant: hookapi.SecretGrant{Relation: hookapi.NoRelation}}
	g.relationFlag.addFlags(f)
	f.AddString(&g.grant.Service, "revoke all grants to this application", "APPLICATION", "app", "application")
	f.AddString(&g.grant.Unit, "revoke the grant to this unit", "UNIT", "unit")

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		if g.grant.Service != "" && g.grant.Unit != "" {
			return hookenv.UsageErrorf("specify only one of application or unit")
		}

		id, err := takeOnlySecretID(inv)
		if err != nil {
			return err
		}

		// If only an application or a unit is given, the initial NoRelation stays, which matches all relations.
		inAllRelations := g.option == "" && g.grant.Service+g.grant.Unit != ""
		if !inAllRelations {
			if err := g.setRelation(ctx, inv); err != nil {
				return err
			}
		}

		return inv.Hook.RevokeSecret(ctx, id, g.grant)
	}
}
