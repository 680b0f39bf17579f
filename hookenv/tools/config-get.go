package tools

import (
	"context"
	"maps"

	"bijou/hookenv"
)

// prepareConfigGet declares the options of config-get. The tool prints one of the charm's options, all that have a value
// or, with --all, all of them. If the one option has no value or is unknown, the tool prints null in JSON, and nothing
// in other formats.
func prepareConfigGet(f *hookenv.FlagSet) hookenv.Runner {
	all := false
	f.AddBool(&all, "print all options, also those without a value", "a", "all")
	f.AddFormat()

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		key := inv.Arg(0)
		if all && key != "" {
			return hookenv.UsageErrorf("cannot use argument --all together with key %q", key)
		}
		if err := inv.CheckUnitCall(1); err != nil {
			return err
		}

		config, err := inv.Hook.Config(ctx)
		if err != nil {
			return err
		}
		if key != "" {
			return inv.Print(inv.ConvertFloats(config[key]))
		}

		// Config does not promise a map that its caller can change.
		printed := maps.Clone(config)
		if !all {
			maps.DeleteFunc(printed, func(_ string, value any) bool { return value == nil })
		}
		return inv.Print(inv.ConvertFloats(printed))
	}
}
