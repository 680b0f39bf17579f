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

// WhileAdvised calls f and returns its error. At the same time it queries the store's servers once for their faults, and
// logs a warning for each fault. f does not wait for this query, and the query is cancelled when f returns.
// WhileAdvised returns when the query has also ended.
func WhileAdvised(ctx context.Context, store Adviser, f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	var query sync.WaitGroup
	query.Go(func() {
		for _, warning := range store.Advisories(ctx) {
			slog.Warn(warning)
		}
	})
	// Deferred calls run in reverse order. cancel must run first, since the query may end only with ctx.
	defer query.Wait()
	defer cancel()

	return f()
}
