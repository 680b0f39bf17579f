package juju

import (
	"fmt"
	"strings"

	"bijou/multicall/console"
)

// parsePairs parses words KEY=VALUE. It returns a usage error for a word of any other form, and for a key that is
// given twice.
func parsePairs(words []string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" {
			return nil, console.Usage(fmt.Errorf("%q is not of the form key=value", w))
		}
		if _, twice := pairs[key]; twice {
			return nil, console.Usage(fmt.Errorf("%q is given twice", key))
		}
		pairs[key] = value
	}

	return pairs, nil
}
