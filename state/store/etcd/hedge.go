package etcd

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	hedgeDelay  = 200 * time.Millisecond // before another member is asked, at least
	hedgeFactor = 5                      // and what the last read took, times that
	hedgeSoon   = 10 * time.Millisecond  // instead of hedgeDelay, where that has helped not longer ago
	hedgeMemory = 10 * time.Second       // than this: the silent member's turn comes again and again
)

// hedge calls f, a read, and again beside it each time that it takes long, later each time:
// the next call goes to the next member that is connected, since one that is cut off from
// the others does not say so. The first answer counts. Where there is but one member, or
// all are slow, that would only make more work.
func hedge[T any](ctx context.Context, d *db, f func(ctx context.Context) (T, error)) (value T, err error) {
	maxAsked := len(d.place.endpoints) + 1 // a new connection may make it one's turn twice
	if maxAsked == 2 {
		return f(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	answers := make(chan error, maxAsked) // nobody listens to those that come late
	var once sync.Once
	ask := func() {
		began := time.Now()
		v, err := f(ctx)
		if err == nil {
			once.Do(func() { value = v })
		}
		if err == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			d.took.Store(int64(time.Since(began)))
		}
		answers <- err
	}
	delay := hedgeDelay
	if time.Since(time.Unix(0, d.hedged.Load())) < hedgeMemory {
		delay = hedgeSoon
	}
	delay = max(delay, hedgeFactor*time.Duration(d.took.Load()))
	for asked, failed := 0, 0; ; {
		if asked < maxAsked {
			asking.Go(ask)
			asked++
		}
		select {
		case err = <-answers:
			if err == nil && asked > 1 {
				d.hedged.Store(time.Now().UnixNano())
			}
			if failed++; err == nil || failed == asked {
				return value, err
			}
		case <-time.After(delay << (asked - 1)):
		}
	}
}
