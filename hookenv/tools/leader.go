package tools

import (
	"context"
	"fmt"
	"strings"

	"bijou/hookenv"
)

func printLeaderSettings(ctx context.Context, inv *hookenv.Invocation, o *hookenv.FormatOption) error {
	key := keyArgument(inv)
	if strings.Contains(key, "=") {
		return hookenv.UsageErrorf("invalid key %q", key)
	}
	if err := inv.CheckUnitCall(1); err != nil {
		return err
	}
	settings, err := inv.Hook.LeaderSettings(ctx)
	if err != nil {
		return fmt.Errorf("cannot read leadership settings: %w", err)
	}
	value, set := settings[key]
	switch {
	case key != "" && set:
		return o.Print(inv, value)
	case key != "":
		return o.Print(inv, nil)
	case len(settings) == 0 && o.FormatFor(inv, settings) == hookenv.FormatJSON:
		o.Format = hookenv.FormatJSON
		return o.Print(inv, nil) // "null", as charm libraries know it from Juju
	}
	return o.Print(inv, settings)
}

func setLeaderSettings(ctx context.Context, inv *hookenv.Invocation, changes map[string]*string) error {
	for key, value := range changes {
		if *value == "" {
			changes[key] = nil
		}
	}
	if err := inv.Hook.SetLeaderSettings(ctx, changes); err != nil {
		return fmt.Errorf("cannot write leadership settings: %w", err)
	}
	return nil
}

func printLeadership(ctx context.Context, inv *hookenv.Invocation, o *hookenv.FormatOption) error {
	leads, err := inv.Hook.IsLeader(ctx)
	if err != nil {
		return fmt.Errorf("leadership status unknown: %w", err)
	}
	return o.Print(inv, leads)
}

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
