package tools

import (
	"context"

	"bijou/hookenv"
)

// prepareSecretIDs declares the options of secret-ids, which prints the ids of the secrets that the unit manages.
func prepareSecretIDs(f *hookenv.FlagSet) hookenv.Runner {
	f.AddFormat(hookenv.FormatSmart, hookenv.FormatJSON, hookenv.FormatYAML)

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		if err := inv.CheckUnitCall(0); err != nil {
			return err
		}
		infos, err := inv.Hook.SecretInfos(ctx)
		if err != nil {
			return err
		}

		ids := []string{}
		for _, info := range infos {
			ids = append(ids, info.ID)
		}

		return inv.Print(ids)
	}
}
