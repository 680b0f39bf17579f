package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"bijou/state/store"
)

var awayCases = []testCase{
	{"a store that is away says so, and goes on when it is back", awayAndBack},
}

func awayAndBack(f *fixture) {
	if f.o.Away == nil {
		f.Skip("it is never away")
	}
	w := f.watch(f.write(put("w/a", "1")), "w/")
	l := f.lease(longTTL)
	back := sync.OnceFunc(f.o.Away(f.T, f.s))
	defer back()
	var err error
	// A process may still answer one request after it was stopped.
	for err == nil {
		short, cancel := context.WithTimeout(f.ctx, time.Second)
		_, err = f.s.Commit(short, store.Txn{Ops: []store.Op{put("called off", "1")}})
		cancel()
	}
	f.is(err, store.ErrAway)
	f.is(err, context.DeadlineExceeded)

	stopped, stop := context.WithCancel(f.ctx)
	stop()
	_, err = f.s.Lease(stopped, longTTL)
	f.is(err, context.Canceled)
	if errors.Is(err, store.ErrAway) {
		f.Fatal("a call that was called off says that the store is away")
	}
	back()
	f.sees(w, f.write(put("w/b", "1")), "w/b")
	f.alive(l)
	f.write(under(l, "w/c", "1"))
}
