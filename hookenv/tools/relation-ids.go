package tools

import (
	"context"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// printRelationIDs prints the ids of the local unit's relations at one endpoint. The first argument names the endpoint.
// Without an argument, it is the endpoint of the hook's relation.
func printRelationIDs(ctx context.Context, inv *hookenv.Invocation) error {
	name, err := endpointArgument(ctx, inv)
	if err != nil {
		return err
	}

	relations, err := listRelations(ctx, inv.Hook, inv.Facts.Unit)
	if err != nil {
		return err
	}

	ids := []string{}
	for _, r := range relations {
		// If the service is not in the relation, end.Name is empty.
		if end, _ := findEnd(r, inv.Facts.Service); end.Name == name {
			ids = append(ids, formatRelationID(inv.Facts.Dialect, r, inv.Facts.Service))
		}
	}

	return inv.Print(ids)
}

// endpointArgument returns the endpoint in the first argument, or without an argument the endpoint of the hook's
// relation.
func endpointArgument(ctx context.Context, inv *hookenv.Invocation) (string, error) {
	if len(inv.Args) > 0 {
		return inv.Args[0], nil
	}
	if inv.Facts.Relation == hookapi.NoRelation {
		return "", hookenv.UsageErrorf("no endpoint name specified")
	}

	r, err := inv.Hook.Relation(ctx, inv.Facts.Relation)
	if err != nil {
		return "", err
	}

	end, _ := findEnd(r, inv.Facts.Service)
	return end.Name, nil
}
