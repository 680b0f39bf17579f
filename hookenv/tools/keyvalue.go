package tools

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"bijou/hookenv"
)

// withPairs returns the Prepare of a tool that takes KEY=VALUE or --file and nothing else, and is
// called for the local unit.
func withPairs(set func(ctx context.Context, inv *hookenv.Invocation, changes map[string]*string) error) func(*hookenv.FlagSet) hookenv.Runner {
	return func(f *hookenv.FlagSet) hookenv.Runner {
		file := ""
		f.AddString(&file, "read keys and values from a YAML or JSON file; - is stdin", "FILE", "file")

		return func(ctx context.Context, inv *hookenv.Invocation) error {
			changes, err := readChanges(ctx, inv, file)
			if err != nil {
				return err
			}
			if err := inv.RequireLocalUnit(); err != nil {
				return err
			}

			return set(ctx, inv, changes)
		}
	}
}

// readChanges returns the changes of settings that the arguments and the file hold. Arguments win over the
// file. null in a file is the empty text, so that no value is nil.
func readChanges(ctx context.Context, inv *hookenv.Invocation, file string) (map[string]*string, error) {
	given, err := parsePairs(inv.Args)
	if err != nil || file == "" {
		return given, err
	}

	data, err := inv.Files.Read(ctx, file)
	if err != nil {
		return nil, err
	}
	changes, err := hookenv.ParseDictionary(data)
	if err != nil {
		return nil, err
	}

	empty := ""
	for key, value := range changes {
		if value == nil {
			changes[key] = &empty
		}
	}

	maps.Copy(changes, given)
	return changes, nil
}

// parsePairs reads arguments of the form KEY=VALUE. It returns a usage error for any other argument, and
// for a key that comes twice.
func parsePairs(args []string) (map[string]*string, error) {
	changes := map[string]*string{}
	for _, arg := range args {
		key, value, isPair := strings.Cut(arg, "=")
		if !isPair || key == "" {
			return nil, hookenv.UsageErrorf(`expected "key=value", got %q`, arg)
		}
		if _, twice := changes[key]; twice {
			return nil, hookenv.UsageErrorf("key %q specified more than once", key)
		}
		if err := hookenv.CheckText(key, value); err != nil {
			return nil, fmt.Errorf("cannot set %q: %w", key, err)
		}
		changes[key] = &value
	}

	return changes, nil
}

// keyArgument returns the first argument; empty, for - too, means all keys.
func keyArgument(inv *hookenv.Invocation) string {
	if len(inv.Args) == 0 || inv.Args[0] == "-" {
		return ""
	}
	return inv.Args[0]
}

// printLeaderSettings prints all of the leader's settings, or one.
func printLeaderSettings(ctx context.Context, inv *hookenv.Invocation) error {
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
	if key == "" && len(settings) == 0 && inv.FormatFor(settings) == hookenv.FormatJSON {
		inv.Format = hookenv.FormatJSON
		return inv.Print(nil) // "null", as charm libraries know it from Juju
	}

	return printSettings(inv, settings, key)
}

// setLeaderSettings writes the leader's settings. An empty value removes a key.
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

func printLeadership(ctx context.Context, inv *hookenv.Invocation) error {
	leads, err := inv.Hook.IsLeader(ctx)
	if err != nil {
		err = fmt.Errorf("leadership status unknown: %w", err)
	}

	return inv.PrintResult(leads, err)
}

func prepareStateGet(f *hookenv.FlagSet) hookenv.Runner {
	strict := false
	f.AddBool(&strict, "fail if the key is not there", "strict")
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

func setState(ctx context.Context, inv *hookenv.Invocation, changes map[string]*string) error {
	return inv.Hook.SetState(ctx, changes)
}

func deleteState(ctx context.Context, inv *hookenv.Invocation) error {
	if inv.Arg(0) == "" {
		return nil
	}
	return inv.Hook.SetState(ctx, map[string]*string{inv.Args[0]: nil})
}

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
		if key != "" {
			return inv.PrintResult(inv.ConvertFloats(config[key]), err)
		}

		printed := maps.Clone(config)
		maps.DeleteFunc(printed, func(_ string, value any) bool { return value == nil && !all })
		return inv.PrintResult(inv.ConvertFloats(printed), err)
	}
}
