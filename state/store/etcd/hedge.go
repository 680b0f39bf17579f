package etcd

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// hedges are reads that ask another member, too, once the first takes its time: it may be
// cut off from the others, and nobody says so. Where reads take long anyway, as on a
// machine that has other work, they wait in proportion.
type hedges struct{ took atomic.Int64 }

const (
	hedgeDelay  = 200 * time.Millisecond // before another member is asked, at least
	hedgeFactor = 5                      // and what reads took last, times that
	maxAsked    = 4
)

// hedge calls f, a read, and again beside it each time that it takes long, later each time:
// the next call goes to the next member that is connected. The first answer counts.
func hedge[T any](ctx context.Context, h *hedges, f func(ctx context.Context) (T, error)) (value T, err error) {
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
			once.Do(func() { value = v; h.took.Store(int64(time.Since(began))) })
		}
		answers <- err
	}
	delay := max(hedgeDelay, hedgeFactor*time.Duration(h.took.Load()))
	for asked, failed := 0, 0; ; {
		if asked < maxAsked {
			asking.Go(ask)
			asked++
		}
		select {
		case err = <-answers:
			if failed++; err == nil || failed == asked {
				return value, err
			}
		case <-time.After(delay << (asked - 1)):
		}
	}
}
