package tools

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"bijou/hookenv"
)

// withPairs returns the Prepare function of a tool that accepts only KEY=VALUE arguments and --file, and that works for
// the local unit. The tool calls set with the pairs, whose values are never nil.
func withPairs(
	set func(ctx context.Context, inv *hookenv.Invocation, changes map[string]*string) error,
) func(*hookenv.FlagSet) hookenv.Runner {
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

// readChanges returns the changes of settings in the arguments and the file. Arguments take precedence over
// the file. A null in the file becomes an empty text, so that no value is nil.
func readChanges(ctx context.Context, inv *hookenv.Invocation, file string) (map[string]*string, error) {
	given, err := parsePairs(inv.Args)
	if err != nil {
		return given, err
	}
	if file == "" {
		return given, nil
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

// parsePairs parses arguments of the form KEY=VALUE. It returns a usage error for any other argument, and for a key that
// is given twice. It also returns an error if a key or value is not UTF-8, or contains a NUL byte.
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

// keyArgument returns the key in the first argument. It returns an empty string, which stands for all keys, if there is
// no argument or if it is "-".
func keyArgument(inv *hookenv.Invocation) string {
	if len(inv.Args) == 0 || inv.Args[0] == "-" {
		return ""
	}
	return inv.Args[0]
}

// printSettings prints the value of the key, or all settings if key is empty. For a missing key it prints nil, which is
// null in JSON and nothing in other formats.
func printSettings(inv *hookenv.Invocation, settings map[string]string, key string) error {
	if key == "" {
		return inv.Print(settings)
	}
	if value, ok := settings[key]; ok {
		return inv.Print(value)
	}

	return inv.Print(nil)
}
