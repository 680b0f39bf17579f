package agents

import (
	"context"
	"errors"
	"testing"
	"time"

	"bijou/state"
)

// TestOpenWaits checks that a daemon waits for a store that does not answer until the daemon is stopped. If
// there is no store, the daemon ends immediately.
func TestOpenWaits(t *testing.T) {
	for _, c := range []struct {
		url   string
		limit time.Duration
		want  error
	}{
		{"etcd+unix:///nonexistent/sock?prefix=/a", 300 * time.Millisecond, context.DeadlineExceeded},
		{"sqlite:/nonexistent/store", time.Minute, state.ErrNoStore},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), c.limit)
		err := (&daemonFlags{State: c.url}).withState(ctx, func(*state.State) error { return nil })
		if !errors.Is(err, c.want) || errors.Is(err, state.ErrAway) {
			t.Errorf("%s: got %v, want %v", c.url, err, c.want)
		}
		cancel()
	}
}
