package unitcall

import (
	"context"
	"errors"
	"testing"
)

// TestInterruptIsNoMissingUnit checks that an interrupted search for the unit's agent does not say that there is no
// such unit.
func TestInterruptIsNoMissingUnit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, Request{Unit: "app/0", Line: "true"})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want an interruption", err)
	}
}
