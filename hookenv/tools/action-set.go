package tools

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bijou/hookenv"
)

// resultKey matches one part of a result's key, between dots.
var resultKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9](([a-z0-9-.]+)?[a-z0-9])?$`)
})

// setResults merges the arguments, of the form KEY=VALUE, into the results of the action.
func setResults(ctx context.Context, inv *hookenv.Invocation) error {
	results, err := parseResults(inv.Args)
	if err != nil {
		return err
	}
	if len(results) == 0 {
		return nil
	}
	return inv.Hook.SetResults(ctx, results)
}

// parseResults parses results of the form KEY=VALUE. A key with dots stands for nested dictionaries. A later result
// replaces earlier results with which it conflicts. parseResults returns an error for invalid keys, and for keys that
// the agent sets itself.
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
		reserved := []string{"stdout", "stdout-encoding", "stderr", "stderr-encoding", "return-code"}
		if slices.Contains(reserved, keys[0]) {
			return nil, hookenv.UsageErrorf("cannot set %q: the agent sets it", keys[0])
		}
		for _, key := range keys {
			if !resultKey().MatchString(key) {
				return nil, hookenv.UsageErrorf(
					"invalid key %q: want lower-case letters and digits, and dashes only between them", key)
			}
		}
		putNested(results, keys, value)
	}

	return results, nil
}

// putNested sets the value at a path of keys. It creates missing dictionaries, and replaces other values on
// the path with dictionaries.
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
