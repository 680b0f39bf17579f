package etcd

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	minHedgeDelay    = 200 * time.Millisecond // before another member is asked
	hedgeFactor      = 5                      // but not before so many times what the last read took
	eagerHedgeDelay  = 10 * time.Millisecond  // instead of minHedgeDelay, while hedging has helped within
	eagerHedgeWindow = 10 * time.Second       // this time: the silent member's turn comes again and again
)

// hedgeRead calls f, a read, again beside a call that takes long, after a longer delay
// each time. Each call goes to the next connected member, since one that is cut off from
// the others does not say so. The first answer counts. The delay grows with the last
// read's time: where all members are slow, hedging would only make more work.
func hedgeRead[T any](ctx context.Context, d *db, f func(ctx context.Context) (T, error)) (value T, err error) {
	maxAsked := len(d.config.endpoints) + 1 // a new connection may make it one's turn twice
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
			d.readLatency.Store(int64(time.Since(began)))
		}
		answers <- err
	}
	delay := minHedgeDelay
	if time.Since(time.Unix(0, d.lastHedge.Load())) < eagerHedgeWindow {
		delay = eagerHedgeDelay
	}
	delay = max(delay, hedgeFactor*time.Duration(d.readLatency.Load()))
	for asked, failed := 0, 0; ; {
		if asked < maxAsked {
			asking.Go(ask)
			asked++
		}
		select {
		case err = <-answers:
			if err == nil && asked > 1 {
				d.lastHedge.Store(time.Now().UnixNano())
			}
			if failed++; err == nil || failed == asked {
				return value, err
			}
		case <-time.After(delay << (asked - 1)):
		}
	}
}
