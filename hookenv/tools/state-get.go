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
		notes, err := inv.Hook.State(ctx)
		if err != nil {
			return err
		}

		key := keyArgument(inv)
		value, set := notes[key]
		switch {
		case key == "":
			return inv.Print(notes)
		case !set && strict:
			return fmt.Errorf("%q not found", key)
		case !set && !inv.IsModern():
			return inv.Print(nil)
		}

		return inv.Print(value)
	}
}
