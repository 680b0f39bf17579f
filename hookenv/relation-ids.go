package hookenv

import (
	"context"

	"bijou/hookenv/hookapi"
)

func relationIDs() Tool {
	return Tool{
		Name:     "relation-ids",
		Summary:  "list the ids of the unit's relations with a name",
		Usage:    "[NAME]",
		Notes:    "NAME defaults to the name of the relation that the hook is about.",
		Examples: []string{"relation-ids db", `for id in $(relation-ids website); do relation-set -r "$id" port=80; done`},
		prepare:  printer(printRelationIDs),
	}
}

func printRelationIDs(ctx context.Context, inv *invocation, o *output) error {
	if err := inv.checkUnitCall(1); err != nil {
		return err
	}
	name, err := relationName(ctx, inv)
	if err != nil {
		return err
	}
	relations, err := listRelations(ctx, inv.hook, inv.facts.Unit)
	if err != nil {
		return err
	}
	ids := []string{}
	for _, r := range relations {
		if end, _ := findEnd(r, inv.facts.Service); end.Name == name {
			ids = append(ids, formatRelationID(inv.facts.Dialect, r, inv.facts.Service))
		}
	}
	return o.print(inv, ids)
}

func relationName(ctx context.Context, inv *invocation) (string, error) {
	if len(inv.args) > 0 {
		return inv.args[0], nil
	}
	if inv.facts.Relation == hookapi.NoRelation {
		return "", usagef("no endpoint name specified")
	}
	r, err := inv.hook.Relation(ctx, inv.facts.Relation)
	if err != nil {
		return "", err
	}
	end, _ := findEnd(r, inv.facts.Service)
	return end.Name, nil
}
