package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
)

// prepareStateGet declares the options of state-get, which prints one or all of the unit's own key-value pairs.
func prepareStateGet(f *hookenv.FlagSet) hookenv.Runner {
	strict := false
	f.AddBool(&strict, "fail if the key does not exist", "strict")
	f.AddFormat()

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		pairs, err := inv.Hook.State(ctx)
		if err != nil {
			return err
		}

		key := keyArgument(inv)
		if key == "" {
			return inv.Print(pairs)
		}

		value, isSet := pairs[key]
		switch {
		case !isSet && strict:
			return fmt.Errorf("%q not found", key)
		case !isSet && !inv.IsModern():
			return inv.Print(nil)
		}

		return inv.Print(value) // for a missing key, modern charms get an empty text
	}
}
