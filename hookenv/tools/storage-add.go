package tools

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"bijou/hookenv"
)

// addStorage requests more storage for the unit. An argument is NAME or NAME=COUNT. Only the operator can choose the
// pool and the size of the storage.
func addStorage(ctx context.Context, inv *hookenv.Invocation) error {
	counts := map[string]int{}
	for _, word := range inv.Args {
		name, number, hasCount := strings.Cut(word, "=")
		if !hasCount {
			counts[name]++
			continue
		}

		count, err := strconv.Atoi(number)
		isValid := err == nil && count >= 1 && count <= 50
		if !isValid {
			return hookenv.UsageErrorf(
				"%q: want NAME or NAME=COUNT, with COUNT at most 50: charms cannot choose a pool or size",
				word,
			)
		}
		counts[name] += count
	}

	if err := inv.Hook.AddStorage(ctx, counts); err != nil {
		return fmt.Errorf("cannot add storage: %w", err)
	}

	return nil
}
