package tools

import (
	"context"

	"bijou/hookenv"
)

func prepareRelationModelGet(f *hookenv.FlagSet) hookenv.Runner {
	w := &relationFlag{}
	w.addFlags(f)
	f.AddFormat()

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		if err := w.checkRelation(ctx, inv); err != nil {
			return err
		}
		id, err := w.resolveRelation(ctx, inv, inv.Facts.Unit)
		if err != nil {
			return err
		}
		_, err = inv.Hook.Relation(ctx, id)
		return inv.PrintResult(map[string]any{"uuid": inv.Facts.Model}, err)
	}
}
