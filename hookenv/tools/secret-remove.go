package tools

import (
	"context"
	"strconv"

	"bijou/hookenv"
)

func prepareSecretRemove(f *hookenv.FlagSet) hookenv.Runner {
	revision := 0
	f.AddFunc(func(name, value string) (err error) {
		if revision, err = strconv.Atoi(value); err != nil || revision < 1 {
			return hookenv.UsageErrorf("invalid value %q for option %s: want a number from 1", value, name)
		}
		return nil
	}, "this revision only", "N", "revision")
	return func(ctx context.Context, inv *hookenv.Invocation) error {
		id, err := takeOnlySecretID(inv)
		if err != nil {
			return err
		}
		return inv.Hook.RemoveSecret(ctx, id, revision)
	}
}
