package tools

import (
	"context"
	"maps"

	"bijou/hookenv"
)

func prepareConfigGet(f *hookenv.FlagSet) hookenv.Runner {
	g := &configGetter{}
	f.AddBool(&g.all, "print all options, also those without a value", "a", "all")
	g.FormatOption.AddFlag(f)
	return g.run
}

type configGetter struct {
	hookenv.FormatOption
	all bool
}

func (g *configGetter) run(ctx context.Context, inv *hookenv.Invocation) error {
	key := ""
	if len(inv.Args) > 0 {
		key = inv.Args[0]
	}
	if g.all && key != "" {
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
		maps.DeleteFunc(printed, func(_ string, value any) bool { return value == nil && !g.all })
		return g.Print(inv, inv.ConvertFloats(printed))
	}
	return g.Print(inv, inv.ConvertFloats(config[key]))
}
