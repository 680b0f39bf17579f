package uniter

import (
	"context"
	"testing"

	"bijou/state"
	"bijou/testscripts/statetest"
)

// TestWhatWasReadInPartIsNoSight: a view that fails may be begun again, and must
// not find that everything is known already.
func TestWhatWasReadInPartIsNoSight(t *testing.T) {
	st, _ := statetest.SQLite(t)
	ctx, cancel := context.WithCancel(t.Context())
	var s sight
	err := st.View(ctx, func(v *state.View) error {
		cancel()
		return s.read(v, "app/0")
	})
	if err == nil || s.known {
		t.Errorf("known is %t after %v", s.known, err)
	}
}
