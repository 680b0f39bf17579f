package agents

import (
	"context"
	"errors"
	"testing"
	"time"

	"bijou/state"
)

// TestOpenWaits: a daemon waits for a store at which nobody answers until it is
// told to end, and ends at once where there is none.
func TestOpenWaits(t *testing.T) {
	for _, c := range []struct {
		url  string
		want error
	}{
		{"etcd+unix:///nonexistent/sock?prefix=/a", context.DeadlineExceeded},
		{"sqlite:/nonexistent/store", state.ErrNoStore},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, _, err := (&daemonFlags{State: c.url}).openState(ctx)
		if !errors.Is(err, c.want) || errors.Is(err, state.ErrAway) {
			t.Errorf("%s: got %v, want %v", c.url, err, c.want)
		}
		cancel()
	}
}
