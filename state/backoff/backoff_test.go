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
	for range 20 { // repeated, because either of the two may be noticed first
		if err := Sleep(ctx, 0); !errors.Is(err, context.Canceled) {
			t.Fatalf("with a ctx that is done: %v", err)
		}
	}
}

// TestUntil checks that a wait ends with its event, at its time, or when its caller is done.
func TestUntil(t *testing.T) {
	broken := errors.New("broken")
	ever := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

	for what, tt := range map[string]struct {
		at   time.Duration // 0 means never
		wait func(context.Context) error
		gone time.Duration // the time at which the caller is done
		want error
		took time.Duration
	}{
		"it comes":               {time.Minute, func(context.Context) error { return nil }, time.Hour, nil, 0},
		"it fails":               {time.Minute, func(context.Context) error { return broken }, time.Hour, broken, 0},
		"the time comes":         {time.Minute, ever, time.Hour, nil, time.Minute},
		"the caller is done":     {time.Hour, ever, time.Minute, context.DeadlineExceeded, time.Minute},
		"never, and that is all": {0, ever, time.Minute, context.DeadlineExceeded, time.Minute},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.gone)
				defer cancel()
				began, at := time.Now(), time.Time{}
				if tt.at > 0 {
					at = began.Add(tt.at)
				}

				err := Until(ctx, at, tt.wait)
				if took := time.Since(began); !errors.Is(err, tt.want) || took != tt.took {
					t.Errorf("%v after %s, want %v after %s", err, took, tt.want, tt.took)
				}
			})
		})
	}
}
