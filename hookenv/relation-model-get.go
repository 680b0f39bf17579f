package hookenv

import "context"

func relationModelGet() Tool {
	return Tool{
		Name:     "relation-model-get",
		Summary:  "print the uuid of the model at a relation's other end",
		Usage:    "[-r VALUE] [--format FORMAT]",
		Notes:    "Both ends of a relation are in the same environment: it is always the local one's.",
		Examples: []string{"relation-model-get", "relation-model-get -r db:4"},
		prepare: func(f *flagSet) runner {
			w, o := &relationFlag{}, &output{}
			w.addFlags(f)
			o.addFlag(f)
			return func(ctx context.Context, inv *invocation) error { return printModel(ctx, inv, w, o) }
		},
	}
}

func printModel(ctx context.Context, inv *invocation, w *relationFlag, o *output) error {
	if err := inv.limitArgs(0); err != nil {
		return err
	}
	if err := w.checkRelation(ctx, inv); err != nil {
		return err
	}
	id, err := w.resolveRelation(ctx, inv, inv.facts.Unit)
	if err != nil {
		return err
	}
	if _, err := inv.hook.Relation(ctx, id); err != nil {
		return err
	}
	return o.print(inv, inv.facts.Model)
}
