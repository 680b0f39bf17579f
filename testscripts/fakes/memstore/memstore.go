// Package memstore is a store in memory, for tests.
//
// It is not durable, keeps every version forever and shares nothing between processes. Within one
// process, Share opens a store a second time. It starts no goroutines, so it works well inside bubbles
// of testing/synctest.
package memstore

import (
	"context"
	"sync"
	"time"

	"bijou/state/store"
)

// handle is one user of the data, like a process that uses a store on disk.
type handle struct {
	d      *data
	closed chan struct{}

	mu     sync.Mutex
	leases map[store.LeaseID]*lease // the leases that end with the handle
}

// New returns a new, empty store.
func New() store.Store {
	return newHandle(newData())
}

// Share opens the store behind s a second time, as if in another process. The new handle has its own
// leases and watchers. Share panics unless this package made s.
func Share(s store.Store) store.Store {
	return newHandle(s.(*handle).d)
}

func newHandle(d *data) *handle {
	return &handle{d: d, closed: make(chan struct{}), leases: map[store.LeaseID]*lease{}}
}

func (o *handle) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := o.checkUsable(ctx); err != nil {
		return nil, err
	}
	return &snapshot{o: o}, nil
}

func (o *handle) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if err := o.checkUsable(ctx); err != nil {
		return 0, err
	}
	if err := txn.Check(); err != nil {
		return 0, err
	}
	return o.d.commit(txn)
}

func (o *handle) Watch(ctx context.Context, after int64, scope store.Scope) (store.Watcher, error) {
	if err := o.checkUsable(ctx); err != nil {
		return nil, err
	}
	return &watcher{o: o, position: after, scope: scope, closed: make(chan struct{})}, nil
}

func (o *handle) Lease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	if err := o.checkUsable(ctx); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.d.grantLease(ttl)
	o.leases[l.id] = l
	return l, nil
}

func (o *handle) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.checkUsable(context.Background()) != nil {
		return nil
	}
	close(o.closed)
	for id := range o.leases {
		o.d.revokeLease(id)
	}
	return nil
}

func (o *handle) checkUsable(ctx context.Context) error {
	select {
	case <-o.closed:
		return store.ErrClosed
	default:
		return ctx.Err()
	}
}
