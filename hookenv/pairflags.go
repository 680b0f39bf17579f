package hookenv

import (
	"context"
	"fmt"
	"maps"
	"strings"
)

// pairFlags are the arguments of tools that take KEY=VALUE and nothing else, and their --file.
type pairFlags struct{ file string }

func (p *pairFlags) addFlag(f *flagSet) {
	f.addString(&p.file, "read keys and values from a YAML or JSON file; - is stdin", "FILE", "file")
}

// Arguments win over the file. No value is nil: null in a file is the empty text.
func (p *pairFlags) readChanges(ctx context.Context, inv *invocation) (map[string]*string, error) {
	given, err := parsePairs(inv.args)
	if err != nil || p.file == "" {
		return given, err
	}
	data, err := inv.Files.Read(ctx, p.file)
	if err != nil {
		return nil, err
	}
	changes, err := parseDictionary(data)
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

func parsePairs(args []string) (map[string]*string, error) {
	changes := map[string]*string{}
	for _, arg := range args {
		key, value, isPair := strings.Cut(arg, "=")
		if !isPair || key == "" {
			return nil, usagef(`expected "key=value", got %q`, arg)
		}
		if _, twice := changes[key]; twice {
			return nil, usagef("key %q specified more than once", key)
		}
		if err := checkText(key, value); err != nil {
			return nil, fmt.Errorf("cannot set %q: %w", key, err)
		}
		changes[key] = &value
	}
	return changes, nil
}

// keyArgument returns the first argument; empty, for - too, means all keys.
func keyArgument(inv *invocation) string {
	if len(inv.args) == 0 || inv.args[0] == "-" {
		return ""
	}
	return inv.args[0]
}
