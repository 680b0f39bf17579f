package tools

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"bijou/hookenv"
)

// addStorage requests more storage for the unit. An argument is NAME or NAME=COUNT. The charm cannot choose the pool and
// the size, which only the operator does.
func addStorage(ctx context.Context, inv *hookenv.Invocation) error {
	counts := map[string]int{}
	for _, word := range inv.Args {
		name, text, given := strings.Cut(word, "=")
		count, err := strconv.Atoi(text)
		if given && (err != nil || count < 1 || count > 50) {
			return hookenv.UsageErrorf(
				"%q: want NAME or NAME=COUNT, with COUNT at most 50: charms cannot choose a pool or size",
				word,
			)
		}
		counts[name] += max(count, 1)
	}

	if err := inv.Hook.AddStorage(ctx, counts); err != nil {
		return fmt.Errorf("cannot add storage: %w", err)
	}

	return nil
}
