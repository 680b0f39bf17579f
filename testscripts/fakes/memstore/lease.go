package memstore

import (
	"context"
	"time"

	"bijou/state/store"
)

// lease lives until it is revoked: the process that would keep it alive is
// the one that has the data, so nothing needs refreshing.
type lease struct {
	d    *data
	id   store.LeaseID
	ttl  time.Duration
	done chan struct{}
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
	var ops []store.Op
	for _, key := range d.leaseKeys(id) {
		ops = append(ops, store.Op{Key: key, Delete: true})
	}
	d.apply(ops)
	close(l.done)
}
