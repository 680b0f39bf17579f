package sqlite

import (
	"cmp"
	"context"
	"time"

	"bijou/state/store"
	"bijou/state/store/opener"
)

// Lease inserts a row into the lease table. A lease that had to wait long for the file's
// lock is refreshed before it is returned: it would be as good as expired.
func (d *db) Lease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	if err := d.checkPresent(ctx); err != nil {
		return nil, err
	}
	ttl = max(ttl, time.Millisecond)
	requested := time.Now()
	n, err := d.writer.runJob(ctx, func(t *writeTxn) (int64, error) { return t.insertLease(ttl, d.self()) })
	if err != nil {
		return nil, err
	}
	id := store.LeaseID(n)
	if time.Since(requested) > ttl/3 {
		requested = time.Now()
		if lives, err := d.refreshLease(ctx, id); err != nil || !lives {
			return nil, cmp.Or(err, store.ErrLeaseLost)
		}
	}
	return d.KeepLease(opener.GrantedLease{
		ID: id, TTL: ttl, RequestedAt: requested,
		Refresh: func(ctx context.Context) (bool, error) { return d.refreshLease(ctx, id) },
		Revoke: func(ctx context.Context) error {
			_, err := d.writer.runJob(ctx, func(t *writeTxn) (int64, error) { return 0, t.endLease(id) })
			return err
		},
	})
}

// A refresh makes no revision and does not ring.
func (d *db) refreshLease(ctx context.Context, id store.LeaseID) (lives bool, err error) {
	n, err := d.writer.runJob(ctx, func(t *writeTxn) (int64, error) {
		t.changed = true
		return t.c.exec("UPDATE lease SET counter = counter + 1 WHERE id = ?", int64(id))
	})
	return n > 0, err
}

func (t *writeTxn) insertLease(ttl time.Duration, o leaseOwner) (id int64, err error) {
	t.changed = true
	_, err = t.c.queryRow(`INSERT INTO lease (ttl_ms, counter, pid, start, pidns, boot)
		VALUES (?, 0, ?, ?, ?, ?) RETURNING id`,
		[]any{ttl.Milliseconds(), o.pid, o.start, o.pidns, o.boot}, &id)
	return id, err
}
