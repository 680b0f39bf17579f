package state_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// cancelAfter returns a context that ends after n checks of its state. If a job checks it before each
// transaction, the job is interrupted between two transactions.
func cancelAfter(t *testing.T, n int) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return &countdown{Context: ctx, cancel: cancel, left: int64(n)}
}

type countdown struct {
	context.Context
	cancel context.CancelFunc
	left   int64
}

func (c *countdown) Err() error {
	if atomic.AddInt64(&c.left, -1) < 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// later returns a time after all grace periods.
func later() time.Time { return time.Now().Add(30 * 24 * time.Hour) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
