// Package mem is a store in memory, for unit tests and for the URL mem: only.
//
// It is not durable, keeps every version for ever and shares nothing between
// processes; within one process Share opens a store a second time. It starts
// no goroutines, so it lives well inside testing/synctest bubbles. Package
// state and tests import it.
package mem

import (
	"context"
	"sync"
	"time"

	"bijou/state/store"
)

// opener is one opener of the data.
type opener struct {
	d      *data
	closed chan struct{}

	mu     sync.Mutex
	leases map[store.LeaseID]*lease // those it keeps alive
}

// New makes a fresh, empty store.
func New() store.Store {
	return newOpener(newData())
}

// Share opens the store behind s, which mem made, a second time, as another
// process would: leases and watchers of each are its own.
func Share(s store.Store) store.Store {
	return newOpener(s.(*opener).d)
}

func newOpener(d *data) *opener {
	return &opener{d: d, closed: make(chan struct{}), leases: map[store.LeaseID]*lease{}}
}

func (o *opener) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := o.usable(ctx); err != nil {
		return nil, err
	}
	return &snapshot{o: o}, nil
}

func (o *opener) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if err := o.usable(ctx); err != nil {
		return 0, err
	}
	if err := txn.Check(); err != nil {
		return 0, err
	}
	return o.d.commit(txn)
}

func (o *opener) Watch(ctx context.Context, after int64, prefixes ...string) (store.Watcher, error) {
	if err := o.usable(ctx); err != nil {
		return nil, err
	}
	return &watcher{o: o, pos: after, prefixes: prefixes, closed: make(chan struct{})}, nil
}

func (o *opener) Lease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	if err := o.usable(ctx); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.d.grant(ttl)
	o.leases[l.id] = l
	return l, nil
}

func (o *opener) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.usable(context.Background()) != nil {
		return nil
	}
	close(o.closed)
	for id := range o.leases {
		o.d.revoke(id)
	}
	return nil
}

// usable answers ErrClosed after Close, and the error of a context that has ended.
func (o *opener) usable(ctx context.Context) error {
	select {
	case <-o.closed:
		return store.ErrClosed
	default:
		return ctx.Err()
	}
}
