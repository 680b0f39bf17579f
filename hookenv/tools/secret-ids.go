package tools

import (
	"context"

	"bijou/hookenv"
)

func prepareSecretIDs(f *hookenv.FlagSet) hookenv.Runner {
	o := &hookenv.FormatOption{Format: hookenv.FormatYAML}
	o.AddFlagWith(f, hookenv.FormatYAML, hookenv.FormatJSON)
	return func(ctx context.Context, inv *hookenv.Invocation) error {
		if err := inv.CheckUnitCall(0); err != nil {
			return err
		}
		infos, err := inv.Hook.SecretInfos(ctx)
		ids := []string{}
		for _, info := range infos {
			ids = append(ids, info.ID)
		}
		if err != nil {
			return err
		}
		return o.Print(inv, ids)
	}
}
