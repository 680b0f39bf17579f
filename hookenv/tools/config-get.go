package tools

import (
	"context"
	"maps"

	"bijou/hookenv"
)

func prepareConfigGet(f *hookenv.FlagSet) hookenv.Runner {
	o, all := &hookenv.FormatOption{}, false
	f.AddBool(&all, "print all options, also those without a value", "a", "all")
	o.AddFlag(f)
	return func(ctx context.Context, inv *hookenv.Invocation) error { return printConfig(ctx, inv, o, all) }
}

func printConfig(ctx context.Context, inv *hookenv.Invocation, o *hookenv.FormatOption, all bool) error {
	key := ""
	if len(inv.Args) > 0 {
		key = inv.Args[0]
	}
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
	if key == "" {
		printed := maps.Clone(config)
		maps.DeleteFunc(printed, func(_ string, value any) bool { return value == nil && !all })
		return o.Print(inv, inv.ConvertFloats(printed))
	}
	return o.Print(inv, inv.ConvertFloats(config[key]))
}
