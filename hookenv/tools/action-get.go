package tools

import (
	"context"
	"strings"

	"bijou/hookenv"
)

func printParameters(ctx context.Context, inv *hookenv.Invocation, o *hookenv.FormatOption) error {
	action, err := inv.Hook.Action(ctx)
	if err != nil {
		return err
	}
	var value any = action.Parameters
	if len(inv.Args) > 0 && inv.Args[0] != "" {
		value = followKeys(action.Parameters, strings.Split(inv.Args[0], "."))
	}
	return o.Print(inv, stringList(value))
}

// followKeys returns nil where there is nothing.
func followKeys(value any, keys []string) any {
	for _, key := range keys {
		dictionary, _ := value.(map[string]any)
		value = dictionary[key]
	}
	return value
}

// stringList makes a list of nothing but texts a []string, which is printed one item a line.
func stringList(value any) any {
	list, ok := value.([]any)
	if !ok {
		return value
	}
	texts := make([]string, len(list))
	for i, item := range list {
		if texts[i], ok = item.(string); !ok {
			return value
		}
	}
	return texts
}
