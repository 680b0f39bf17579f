package tools

import (
	"context"

	"bijou/hookenv"
)

func prepareRelationModelGet(f *hookenv.FlagSet) hookenv.Runner {
	w, o := &relationFlag{}, &hookenv.FormatOption{}
	w.addFlags(f)
	o.AddFlag(f)
	return func(ctx context.Context, inv *hookenv.Invocation) error { return printModel(ctx, inv, w, o) }
}

func printModel(ctx context.Context, inv *hookenv.Invocation, w *relationFlag, o *hookenv.FormatOption) error {
	if err := w.checkRelation(ctx, inv); err != nil {
		return err
	}
	id, err := w.resolveRelation(ctx, inv, inv.Facts.Unit)
	if err != nil {
		return err
	}
	if _, err := inv.Hook.Relation(ctx, id); err != nil {
		return err
	}
	return o.Print(inv, inv.Facts.Model)
}
