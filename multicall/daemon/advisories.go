package daemon

import (
	"context"
	"log/slog"
	"sync"
)

// Adviser is a store that knows which faults of its servers an operator must know.
type Adviser interface {
	Advisories(ctx context.Context) []string
}

// WhileAdvised calls f, and asks the store's servers once meanwhile. It logs one warning for each fault
// that they have. Whether they answer changes nothing for f.
func WhileAdvised(ctx context.Context, store Adviser, f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		for _, warning := range store.Advisories(ctx) {
			slog.Warn(warning)
		}
	})
	defer asking.Wait()
	defer cancel()

	return f()
}
