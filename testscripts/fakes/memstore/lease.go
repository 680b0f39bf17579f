package memstore

import (
	"context"
	"time"

	"bijou/state/store"
)

// lease is a lease that lasts until it is revoked. Nobody needs to refresh it, because the data are in the
// same process.
type lease struct {
	d    *data
	id   store.LeaseID
	ttl  time.Duration
	done chan struct{}

	expiry *time.Timer // nil if a handle keeps the lease alive
}

func (l *lease) ID() store.LeaseID     { return l.id }
func (l *lease) Done() <-chan struct{} { return l.done }

func (l *lease) Close(ctx context.Context) error {
	l.d.revokeLease(l.id)
	return nil
}

func (d *data) grantLease(ttl time.Duration) *lease {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastID++
	l := &lease{d: d, id: d.lastID, ttl: ttl, done: make(chan struct{})}
	d.leases[l.id] = l
	return l
}

// revokeLease deletes the lease's keys as one commit. It is idempotent.
func (d *data) revokeLease(id store.LeaseID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.leases[id]
	if l == nil {
		return
	}
	delete(d.leases, id)
	if l.expiry != nil {
		l.expiry.Stop()
	}
	var ops []store.Op
	for _, key := range d.leaseKeys(id) {
		ops = append(ops, store.Op{Key: key, Delete: true})
	}
	d.apply(ops)
	close(l.done)
}

// GrantLease grants a lease that ends with its TTL, and not with the handle.
func (o *handle) GrantLease(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	if err := o.checkUsable(ctx); err != nil {
		return 0, err
	}
	l := o.d.grantLease(ttl)
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	l.expiry = time.AfterFunc(ttl, func() { o.d.revokeLease(l.id) })
	return l.id, nil
}

// RefreshLease restarts the TTL of a lease of GrantLease.
func (o *handle) RefreshLease(ctx context.Context, id store.LeaseID) (lives bool, err error) {
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	l := o.d.leases[id]
	if l != nil && l.expiry != nil {
		l.expiry.Reset(l.ttl)
	}
	return l != nil, o.checkUsable(ctx)
}

// RevokeLease ends the lease, no matter which handle has granted it.
func (o *handle) RevokeLease(ctx context.Context, id store.LeaseID) error {
	if err := o.checkUsable(ctx); err != nil {
		return err
	}
	o.d.revokeLease(id)
	return nil
}
