package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
)

func prepareStateGet(f *hookenv.FlagSet) hookenv.Runner {
	o, strict := &hookenv.FormatOption{}, false
	f.AddBool(&strict, "fail if the key is not there", "strict")
	o.AddFlag(f)
	return func(ctx context.Context, inv *hookenv.Invocation) error { return printState(ctx, inv, o, strict) }
}

func printState(ctx context.Context, inv *hookenv.Invocation, o *hookenv.FormatOption, strict bool) error {
	notes, err := inv.Hook.State(ctx)
	if err != nil {
		return err
	}
	key := keyArgument(inv)
	value, set := notes[key]
	switch {
	case key == "":
		return o.Print(inv, notes)
	case !set && strict:
		return fmt.Errorf("%q not found", key)
	case !set && !inv.IsModern():
		return o.Print(inv, nil)
	}
	return o.Print(inv, value)
}

func setState(ctx context.Context, inv *hookenv.Invocation, changes map[string]*string) error {
	return inv.Hook.SetState(ctx, changes)
}

func deleteState(ctx context.Context, inv *hookenv.Invocation) error {
	if len(inv.Args) == 0 || inv.Args[0] == "" {
		return nil
	}
	return inv.Hook.SetState(ctx, map[string]*string{inv.Args[0]: nil})
}
