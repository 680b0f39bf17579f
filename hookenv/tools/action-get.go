package tools

import (
	"context"
	"strings"

	"bijou/hookenv"
)

// printParameters prints all parameters of the action, or the parameter at a path of keys that are joined by dots. For a
// path without a value it prints null in JSON, and nothing in other formats.
func printParameters(ctx context.Context, inv *hookenv.Invocation) error {
	action, err := inv.Hook.Action(ctx)
	if err != nil {
		return err
	}

	if action.Parameters == nil { // JSON would print nil as null
		action.Parameters = map[string]any{}
	}
	var value any = action.Parameters
	if path := inv.Arg(0); path != "" {
		value = followKeys(action.Parameters, strings.Split(path, "."))
	}
	return inv.Print(stringList(value))
}

// followKeys returns the value at a path of keys in nested dictionaries, or nil if there is none.
func followKeys(value any, keys []string) any {
	for _, key := range keys {
		dictionary, _ := value.(map[string]any) // nil, and so without keys, if the value is not a dictionary
		value = dictionary[key]
	}
	return value
}

// stringList converts a list that contains only texts to a []string, which is printed with one item on each line. It
// returns other values unchanged.
func stringList(value any) any {
	list, ok := value.([]any)
	if !ok {
		return value
	}

	texts := make([]string, len(list))
	for i, item := range list {
		texts[i], ok = item.(string)
		if !ok {
			return value
		}
	}

	return texts
}
