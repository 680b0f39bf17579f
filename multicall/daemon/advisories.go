package daemon

import (
	"context"
	"log/slog"
	"sync"
)

// Adviser is a store that reports faults of its servers that an operator must know about.
type Adviser interface {
	Advisories(ctx context.Context) []string
}

// WhileAdvised calls f. While f runs, it queries the store's servers once for their faults, and logs a
// warning for each. It ends the query when f returns. f does not depend on the servers' answers.
func WhileAdvised(ctx context.Context, store Adviser, f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		for _, warning := range store.Advisories(ctx) {
			slog.Warn(warning)
		}
	})
	// Deferred calls run last first: the asking ends only with ctx.
	defer asking.Wait()
	defer cancel()

	return f()
}
