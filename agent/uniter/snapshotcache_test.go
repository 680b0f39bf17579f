package uniter

import (
	"context"
	"testing"

	"bijou/state"
	"bijou/testscripts/statetest"
)

// TestPartialReadLeavesTheCacheInvalid: a view that fails may be begun again, and must
// not find that everything is known already.
func TestPartialReadLeavesTheCacheInvalid(t *testing.T) {
	st, _ := statetest.SQLite(t)
	ctx, cancel := context.WithCancel(t.Context())
	var s snapshotCache
	err := st.View(ctx, func(v *state.View) error {
		cancel()
		return s.refresh(v, "app/0")
	})
	if err == nil || s.valid {
		t.Errorf("known is %t after %v", s.valid, err)
	}
}
