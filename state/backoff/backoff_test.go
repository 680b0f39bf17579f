package backoff

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Exponential
		for i, most := range []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000} {
			begin := time.Now()
			if err := p.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			most *= time.Millisecond
			if got := time.Since(begin); got < most/2 || got > most {
				t.Errorf("pause %d took %s, want half of %s to all of it", i+1, got, most)
			}
		}
		p.Reset()
		begin := time.Now()
		_ = p.Wait(t.Context())
		if got := time.Since(begin); got > 100*time.Millisecond {
			t.Errorf("after a success it took %s", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("with a ctx that is done: %v", err)
		}
	})
}

func TestSleepSaysWhyCtxIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if err := Sleep(ctx, 0); err != nil {
		t.Error(err)
	}
	cancel()
	for range 20 { // whichever of the two is seen first
		if err := Sleep(ctx, 0); !errors.Is(err, context.Canceled) {
			t.Fatalf("with a ctx that is done: %v", err)
		}
	}
}
