package hookenv

import (
	"context"
	"fmt"
)

func stateGet() Tool {
	return Tool{
		Name:     "state-get",
		Summary:  "print what the unit has noted for itself",
		Usage:    "[--strict] [-|KEY]",
		Notes:    "Without KEY, or for -, it prints all of it. A key that is not there is the empty text.",
		Examples: []string{"state-get installed", "state-get --format=json -"},
		prepare: func(f *flagSet) runner {
			g := &stateGetter{}
			f.addBool(&g.strict, "fail if the key is not there", "strict")
			g.output.addFlag(f)
			return g.run
		},
	}
}

type stateGetter struct {
	output
	strict bool
}

func (g *stateGetter) run(ctx context.Context, inv *invocation) error {
	if err := inv.checkUnitCall(1); err != nil {
		return err
	}
	notes, err := inv.hook.State(ctx)
	if err != nil {
		return err
	}
	key := keyArgument(inv)
	value, set := notes[key]
	switch {
	case key == "":
		return g.print(inv, notes)
	case !set && g.strict:
		return fmt.Errorf("%q not found", key)
	case !set && !inv.isModern():
		return g.print(inv, nil)
	}
	return g.print(inv, value)
}
