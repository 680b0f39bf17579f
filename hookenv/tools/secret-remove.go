package tools

import (
	"context"
	"strconv"

	"bijou/hookenv"
)

// prepareSecretRemove declares the options of secret-remove, which removes a secret or one of its revisions.
func prepareSecretRemove(f *hookenv.FlagSet) hookenv.Runner {
	revision := 0 // the whole secret
	f.AddFunc(func(name, value string) (err error) {
		revision, err = strconv.Atoi(value)
		if err != nil || revision < 1 {
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
