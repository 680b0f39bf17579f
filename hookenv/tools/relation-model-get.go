package tools

import (
	"context"

	"bijou/hookenv"
)

// prepareRelationModelGet declares the options of relation-model-get. It prints the UUID of the local model,
// to which all relations belong.
func prepareRelationModelGet(f *hookenv.FlagSet) hookenv.Runner {
	relation := &relationFlag{}
	relation.addFlags(f)
	f.AddFormat()

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		if err := relation.checkRelation(ctx, inv); err != nil {
			return err
		}
		id, err := relation.resolveRelation(ctx, inv, inv.Facts.Unit)
		if err != nil {
			return err
		}
		// The UUID does not depend on the relation, but the hook must be able to see the relation.
		if _, err := inv.Hook.Relation(ctx, id); err != nil {
			return err
		}

		return inv.Print(map[string]any{"uuid": inv.Facts.Model})
	}
}
