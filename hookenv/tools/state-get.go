package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
)

func prepareStateGet(f *hookenv.FlagSet) hookenv.Runner {
	g := &stateGetter{}
	f.AddBool(&g.strict, "fail if the key is not there", "strict")
	g.FormatOption.AddFlag(f)
	return g.run
}

type stateGetter struct {
	hookenv.FormatOption
	strict bool
}

func (g *stateGetter) run(ctx context.Context, inv *hookenv.Invocation) error {
	notes, err := inv.Hook.State(ctx)
	if err != nil {
		return err
	}
	key := keyArgument(inv)
	value, set := notes[key]
	switch {
	case key == "":
		return g.Print(inv, notes)
	case !set && g.strict:
		return fmt.Errorf("%q not found", key)
	case !set && !inv.IsModern():
		return g.Print(inv, nil)
	}
	return g.Print(inv, value)
}
