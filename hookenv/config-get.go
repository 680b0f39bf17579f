package hookenv

import (
	"context"
	"maps"
)

func configGet() Tool {
	return Tool{
		Name:     "config-get",
		Summary:  "print the service's configuration",
		Usage:    "[-a|--all] [KEY]",
		Notes:    "Without KEY it prints all options that have a value; with --all those without one, too, as null.",
		Examples: []string{"config-get title", "config-get --format=json"},
		prepare: func(f *flagSet) runner {
			g := &configGetter{}
			f.addBool(&g.all, "print all options, also those without a value", "a", "all")
			g.output.addFlag(f)
			return g.run
		},
	}
}

type configGetter struct {
	output
	all bool
}

func (g *configGetter) run(ctx context.Context, inv *invocation) error {
	key := ""
	if len(inv.args) > 0 {
		key = inv.args[0]
	}
	if g.all && key != "" {
		return usagef("cannot use argument --all together with key %q", key)
	}
	if err := inv.checkUnitCall(1); err != nil {
		return err
	}
	config, err := inv.hook.Config(ctx)
	if err != nil {
		return err
	}
	if key == "" {
		printed := maps.Clone(config)
		maps.DeleteFunc(printed, func(_ string, value any) bool { return value == nil && !g.all })
		return g.print(inv, inv.convertFloats(printed))
	}
	value, known := config[key]
	if !known {
		return g.print(inv, nil)
	}
	return g.print(inv, inv.convertFloats(value))
}
