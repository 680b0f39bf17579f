package tools

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bijou/hookenv"
	"bijou/state/text"
)

// resultKey matches one part of a key.
var resultKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9](([a-z0-9-.]+)?[a-z0-9])?$`)
})

func setResults(ctx context.Context, inv *hookenv.Invocation) error {
	results, err := parseResults(inv.Args)
	if err != nil || len(results) == 0 {
		return err
	}
	return inv.Hook.SetResults(ctx, results)
}

// parseResults reads results given as KEY=VALUE, where dots in the key nest them. A later word replaces
// earlier ones that contradict it. It returns an error for invalid keys, and for those that the agent sets
// itself.
func parseResults(words []string) (map[string]any, error) {
	results := map[string]any{}

	for _, word := range words {
		path, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, hookenv.UsageErrorf("argument %q must be of the form key...=value", word)
		}
		if err := hookenv.CheckText(value); err != nil {
			return nil, fmt.Errorf("cannot set %q: %w", path, err)
		}

		keys := strings.Split(path, ".")
		if slices.Contains([]string{"stdout", "stdout-encoding", "stderr", "stderr-encoding", "return-code"}, keys[0]) {
			return nil, hookenv.UsageErrorf("cannot set %q: the agent sets it", keys[0])
		}
		if i := slices.IndexFunc(keys, func(key string) bool { return !resultKey().MatchString(key) }); i >= 0 {
			return nil, hookenv.UsageErrorf(
				"invalid key %q: want lower-case letters, digits and dashes inside",
				keys[i],
			)
		}
		putNested(results, keys, value)
	}

	return results, nil
}

// putNested sets the value below the keys. It replaces a value that stands where a dictionary must be.
func putNested(into map[string]any, keys []string, value string) {
	for _, key := range keys[:len(keys)-1] {
		inner, ok := into[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			into[key] = inner
		}
		into = inner
	}
	into[keys[len(keys)-1]] = value
}

// printParameters prints all parameters of the action, or the one at a path of keys with dots between.
func printParameters(ctx context.Context, inv *hookenv.Invocation) error {
	action, err := inv.Hook.Action(ctx)
	if err != nil {
		return err
	}

	if action.Parameters == nil {
		action.Parameters = map[string]any{}
	}
	var value any = action.Parameters
	if path := inv.Arg(0); path != "" {
		value = followKeys(action.Parameters, strings.Split(path, "."))
	}
	return inv.Print(stringList(value))
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
		texts[i], ok = item.(string)
		if !ok {
			return value
		}
	}

	return texts
}

func failAction(ctx context.Context, inv *hookenv.Invocation) error {
	message := "the action has failed, and gave no reason"
	if len(inv.Args) > 0 {
		message = text.EscapeInvalid(inv.Args[0])
	}
	return inv.Hook.FailAction(ctx, message)
}

func logAction(ctx context.Context, inv *hookenv.Invocation) error {
	return inv.Hook.LogAction(ctx, text.EscapeInvalid(strings.Join(inv.Args, " ")))
}
